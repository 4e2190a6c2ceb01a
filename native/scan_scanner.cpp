#include "scan_scanner.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace trnscope {
namespace {

constexpr size_t kMaxReady = 1;
constexpr auto kPatience = std::chrono::milliseconds(100);

}  // namespace

Scanner::Scanner(ScanOptions options)
    : options_(std::move(options)),
      arg_keys_(options_.arg_keys),
      max_in_flight_(2 * options_.num_threads + 2),
      sequencer_(arg_keys_, options_) {
    for (uint32_t i = 0; i < options_.num_threads; ++i) threads_.emplace_back([this] { work(); });
}

Scanner::~Scanner() {
    stop();
    for (std::thread& thread : threads_) thread.join();
}

void Scanner::stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
}

int Scanner::open(const std::string& path) {
    if (const int error = file_.open(path)) return error;
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t window_bytes = options_.window_bytes;
    num_windows_ = std::max<uint64_t>(1, (file_.size() + window_bytes - 1) / window_bytes);
    is_file_ = true;
    changed_.notify_all();
    return 0;
}

Scanner::Wait Scanner::feed(const char** data, size_t* size) {
    std::unique_lock<std::mutex> lock(mutex_);
    waits_for_consumer_ = consumer_ != std::thread::id() && consumer_ != std::this_thread::get_id();
    changed_.notify_all();
    while (*size > 0) {
        const auto has_room = [this] {
            return is_over() || filling_ || num_fed_ - next_merge_ < max_in_flight_;
        };
        if (!changed_.wait_for(lock, kPatience, has_room)) return Wait::kAgain;
        if (is_over()) return Wait::kDone;
        if (!filling_) {
            filling_ = free_piece();
            filling_->window.reset(fed_bytes_);
        }
        const size_t taken = filling_->window.append(*data, *size);
        *data += taken;
        *size -= taken;
        fed_bytes_ += taken;
        if (filling_->window.is_full()) push_fed(false);
    }
    return Wait::kDone;
}

Scanner::Wait Scanner::close_input() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (closed_ || is_file_) return Wait::kDone;
    closed_ = true;
    if (!filling_) {
        filling_ = free_piece();
        filling_->window.reset(fed_bytes_);
        filling_->window.set_size(0);
    }
    push_fed(true);
    return Wait::kDone;
}

void Scanner::push_fed(bool is_final) {
    filling_->index = num_fed_++;
    filling_->is_final = is_final;
    fed_.push_back(std::move(filling_));
    changed_.notify_all();
}

Scanner::Wait Scanner::next_segment(std::unique_ptr<EventColumns>* segment) {
    std::unique_lock<std::mutex> lock(mutex_);
    consumer_ = std::this_thread::get_id();
    const auto has_news = [this] { return !ready_.empty() || is_over(); };
    if (!changed_.wait_for(lock, kPatience, has_news)) return Wait::kAgain;
    segment->reset();
    if (!ready_.empty() && !stopped_) {
        *segment = std::move(ready_.front());
        ready_.pop_front();
        changed_.notify_all();
    }
    return Wait::kDone;
}

Scanner::Failure Scanner::failure() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
}

std::vector<std::string_view> Scanner::strings() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return strings_;
}

std::optional<std::string_view> Scanner::string(size_t id) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (id >= strings_.size()) return std::nullopt;
    return strings_[id];
}

std::vector<std::string_view> Scanner::tracks() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return tracks_;
}

bool Scanner::has_input() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return is_file_ || closed_ || fed_bytes_ != 0;
}

bool Scanner::is_finished() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return done_;
}

void Scanner::fail(int error_number, const std::string& message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_.error_number == 0 && failure_.message.empty()) failure_ = {error_number, message};
    stopped_ = true;
    changed_.notify_all();
}

void Scanner::work() {
    try {
        work_until_done();
    } catch (const std::exception& error) {
        fail(0, error.what());
    }
}

void Scanner::work_until_done() {
    WindowReader reader(arg_keys_, options_);
    std::unique_lock<std::mutex> lock(mutex_);
    while (!is_over()) {
        if (!merge_next(&lock) && !read_next(&reader, &lock)) changed_.wait(lock);
    }
}

bool Scanner::can_merge() const {
    if (merging_ || read_.empty() || read_.begin()->first != next_merge_) return false;
    return ready_.size() < kMaxReady || !waits_for_consumer_;
}

// Merges the window that is next in order, if it was read; false if there was nothing to do.
bool Scanner::merge_next(std::unique_lock<std::mutex>* lock) {
    if (!can_merge()) return false;
    std::unique_ptr<Piece> piece = std::move(read_.begin()->second);
    read_.erase(read_.begin());
    merging_ = true;
    lock->unlock();
    sequencer_.merge(piece.get());
    std::unique_ptr<EventColumns> segment = sequencer_.take_segment();
    bytes_scanned_ = piece->window.offset() + piece->window.size();
    lock->lock();
    publish_texts();
    merging_ = false;
    ++next_merge_;
    done_ = sequencer_.is_finished();
    if (segment) ready_.push_back(std::move(segment));
    free_.push_back(std::move(piece));
    changed_.notify_all();
    return true;
}

// Makes the texts of what was merged known to others. Only by the thread that merges.
void Scanner::publish_texts() {
    const auto add_new = [](const StringTable& from, std::vector<std::string_view>* to) {
        for (auto id = static_cast<uint32_t>(to->size()); id < from.size(); ++id) {
            to->push_back(from[id]);
        }
    };
    add_new(sequencer_.strings(), &strings_);
    add_new(sequencer_.tracks(), &tracks_);
}

// Reads the next window that nobody has claimed; false if there is none for now.
bool Scanner::read_next(WindowReader* reader, std::unique_lock<std::mutex>* lock) {
    std::unique_ptr<Piece> piece;
    if (!claim(&piece)) return false;
    lock->unlock();
    if (is_file_) load(piece.get());
    reader->read(piece.get());
    lock->lock();
    const uint64_t index = piece->index;
    read_[index] = std::move(piece);
    if (index == next_merge_) changed_.notify_all();
    return true;
}

bool Scanner::claim(std::unique_ptr<Piece>* piece) {
    if (is_file_) {
        if (next_read_ == num_windows_ || next_read_ - next_merge_ >= max_in_flight_) return false;
        *piece = free_piece();
        (*piece)->index = next_read_;
        (*piece)->is_final = next_read_ + 1 == num_windows_;
        (*piece)->window.reset(next_read_ * options_.window_bytes);
        ++next_read_;
        return true;
    }
    if (fed_.empty()) return false;
    *piece = std::move(fed_.front());
    fed_.pop_front();
    return true;
}

void Scanner::load(Piece* piece) {
    const int error = file_.read(&piece->window, options_.window_bytes);
    if (error != 0) fail(error, "");
    // The file may have become shorter since it was opened.
    if (piece->window.size() < options_.window_bytes) piece->is_final = true;
}

std::unique_ptr<Piece> Scanner::free_piece() {
    if (free_.empty()) return std::make_unique<Piece>(arg_keys_, options_.window_bytes);
    std::unique_ptr<Piece> piece = std::move(free_.back());
    free_.pop_back();
    return piece;
}

}  // namespace trnscope
