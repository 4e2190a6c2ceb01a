// The trace scanner: threads that read windows of a trace, and a queue of finished segments.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "scan_sequencer.h"

namespace trnscope {

class Scanner {
  public:
    explicit Scanner(ScanOptions options);
    // Stops the threads, whatever is left to read.
    ~Scanner();
    Scanner(const Scanner&) = delete;
    Scanner& operator=(const Scanner&) = delete;

    // Reads a regular file. Returns 0 or an errno.
    int open(const std::string& path);

    enum class Wait : uint8_t { kDone, kAgain };

    // Takes bytes of a stream: advances *data and *size past what it took. kAgain: there was no
    // room for the rest for a while; call again. Waits for a consumer only if that is another
    // thread. After stop() it takes all and drops it.
    Wait feed(const char** data, size_t* size);
    // The end of the stream. kAgain as above.
    Wait close_input();

    // The next segment in *segment, or nullptr at the end. kAgain: none was ready for a while.
    // The segment is nullptr too when error() tells of a failure.
    Wait next_segment(std::unique_ptr<EventColumns>* segment);

    // Gives up: what is waiting returns, and no more segments come.
    void stop();

    struct Failure {
        int error_number = 0;  // errno of a failed read
        std::string message;   // of any other failure; "out of memory" or a fault of ours
    };
    Failure failure() const;

    uint64_t bytes_scanned() const { return bytes_scanned_; }
    // Texts by id: at least those that the segments handed out so far use. They stay readable.
    std::vector<std::string_view> strings() const;
    std::optional<std::string_view> string(size_t id) const;
    std::vector<std::string_view> tracks() const;
    bool has_input() const;
    bool is_finished() const;
    // Only once is_finished():
    const Sequencer& result() const { return sequencer_; }

  private:
    void work();
    void work_until_done();
    bool merge_next(std::unique_lock<std::mutex>* lock);
    bool read_next(WindowReader* reader, std::unique_lock<std::mutex>* lock);
    bool can_merge() const;
    bool claim(std::unique_ptr<Piece>* piece);
    void load(Piece* piece);
    std::unique_ptr<Piece> free_piece();
    void push_fed(bool is_final);
    void publish_texts();
    void fail(int error_number, const std::string& message);
    bool is_over() const { return stopped_ || done_; }

    const ScanOptions options_;
    const ArgKeys arg_keys_;
    const size_t max_in_flight_;
    Sequencer sequencer_;  // of the thread that has merging_
    InputFile file_;
    std::atomic<uint64_t> bytes_scanned_{0};

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool is_file_ = false;
    bool stopped_ = false;
    bool done_ = false;  // all merged
    bool merging_ = false;
    uint64_t next_read_ = 0;    // window to be read next
    uint64_t next_merge_ = 0;   // window to be merged next
    uint64_t num_windows_ = 0;  // of a file
    std::map<uint64_t, std::unique_ptr<Piece>> read_;
    std::vector<std::unique_ptr<Piece>> free_;
    std::deque<std::unique_ptr<EventColumns>> ready_;
    std::vector<std::string_view> strings_;  // of all that was merged
    std::vector<std::string_view> tracks_;
    Failure failure_;

    // A stream: the window being filled, and those that wait for a worker.
    std::unique_ptr<Piece> filling_;
    std::deque<std::unique_ptr<Piece>> fed_;
    uint64_t num_fed_ = 0;
    uint64_t fed_bytes_ = 0;
    bool closed_ = false;
    std::thread::id consumer_;
    bool waits_for_consumer_ = true;

    std::vector<std::thread> threads_;
};

}  // namespace trnscope
