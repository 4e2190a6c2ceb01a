// Python names of the trace scanner.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>

#include "bindings.h"
#include "scan_scanner.h"

namespace nb = nanobind;

namespace {

using trnscope::AttributeColumn;
using trnscope::Column;
using trnscope::DamageKind;
using trnscope::EventColumns;
using trnscope::Scanner;
using trnscope::ScanOptions;

template <typename T>
nb::object wrap(T* data, size_t size) {
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

template <typename T>
nb::object to_numpy(Column<T>* column) {
    const size_t size = column->size();
    return wrap(column->release(), size);
}

nb::object negative_flags(const AttributeColumn& attribute) {
    const size_t size = attribute.integers.size();
    auto* flags = static_cast<bool*>(std::calloc(size + 1, sizeof(bool)));
    if (flags == nullptr) throw std::bad_alloc();
    for (size_t i = 0; i < attribute.negatives.size(); ++i) flags[attribute.negatives[i]] = true;
    return wrap(flags, size);
}

// A scanner's events; the columns become numpy arrays when the segment is made.
class Segment {
  public:
    Segment(std::unique_ptr<EventColumns> events, const std::vector<bool>& is_text)
        : num_events(events->num_events()),
          ph(to_numpy(&events->ph)),
          flags(to_numpy(&events->flags)),
          category(to_numpy(&events->category)),
          name(to_numpy(&events->name)),
          track(to_numpy(&events->track)),
          ts_ns(to_numpy(&events->ts_ns)),
          dur_ns(to_numpy(&events->dur_ns)),
          id(to_numpy(&events->id)),
          args_offset(to_numpy(&events->args_offset)),
          args_length(to_numpy(&events->args_length)),
          counters(nb::make_tuple(to_numpy(&events->counters.rows),
                                  to_numpy(&events->counters.keys),
                                  to_numpy(&events->counters.values))) {
        for (size_t k = 0; k < is_text.size(); ++k) {
            attributes_.push_back(attribute_arrays(&events->attributes[k], is_text[k]));
        }
    }

    nb::object attribute(int64_t k) const {
        if (k < 0 || static_cast<size_t>(k) >= attributes_.size()) {
            throw nb::index_error("no such requested key");
        }
        return attributes_[static_cast<size_t>(k)];
    }

    const size_t num_events;
    const nb::object ph;
    const nb::object flags;
    const nb::object category;
    const nb::object name;
    const nb::object track;
    const nb::object ts_ns;
    const nb::object dur_ns;
    const nb::object id;
    const nb::object args_offset;
    const nb::object args_length;
    const nb::object counters;

  private:
    static nb::object attribute_arrays(AttributeColumn* attribute, bool is_text) {
        if (is_text) {
            return nb::make_tuple(to_numpy(&attribute->rows), to_numpy(&attribute->string_ids));
        }
        const nb::object negatives = negative_flags(*attribute);
        return nb::make_tuple(to_numpy(&attribute->rows), to_numpy(&attribute->integers),
                              negatives);
    }

    std::vector<nb::object> attributes_;
};

[[noreturn]] void raise_os_error(int error_number, const std::string& path) {
    errno = error_number;
    if (path.empty()) {
        PyErr_SetFromErrno(PyExc_OSError);
    } else {
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
    }
    throw nb::python_error();
}

void check_signals() {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

nb::str decoded(std::string_view text) {
    PyObject* object =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "strict");
    if (object == nullptr) throw nb::python_error();
    return nb::steal<nb::str>(object);
}

// A buffer's bytes; they stay where they are while it lives.
class BufferView {
  public:
    explicit BufferView(nb::handle buffer) {
        if (PyObject_GetBuffer(buffer.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
    }
    BufferView(const BufferView&) = delete;
    BufferView& operator=(const BufferView&) = delete;
    ~BufferView() { PyBuffer_Release(&view_); }

    const char* data() const { return static_cast<const char*>(view_.buf); }
    size_t size() const { return static_cast<size_t>(view_.len); }

  private:
    Py_buffer view_;
};

class PyScanner {
  public:
    PyScanner(const std::vector<std::pair<std::string, std::string>>& arg_keys, int64_t threads,
              int64_t segment_events, int64_t window_bytes, int64_t max_event_bytes) {
        ScanOptions options;
        for (const auto& [key, kind] : arg_keys) {
            if (kind != "int" && kind != "text") {
                throw nb::value_error("an argument is \"int\" or \"text\"");
            }
            is_text_.push_back(kind == "text");
            options.arg_keys.push_back({key, kind == "text"});
        }
        options.num_threads = positive(threads, 256);
        options.segment_events = positive(segment_events, int64_t{1} << 30);
        options.window_bytes = positive(window_bytes, int64_t{1} << 28);
        options.max_event_bytes = positive(max_event_bytes, int64_t{1} << 30);
        scanner_.emplace(std::move(options));
    }

    void open(const std::string& path) {
        if (scanner_->has_input()) throw std::runtime_error("the scanner has its input already");
        if (const int error = scanner_->open(path)) raise_os_error(error, path);
        path_ = path;
    }

    void feed(nb::handle buffer) {
        const BufferView view(buffer);
        const char* data = view.data();
        size_t size = view.size();
        while (wait([&] { return scanner_->feed(&data, &size); }) == Scanner::Wait::kAgain) {
        }
    }

    void close_input() { scanner_->close_input(); }

    void stop() { scanner_->stop(); }

    nb::object next_segment() {
        std::unique_ptr<EventColumns> events;
        while (wait([&] { return scanner_->next_segment(&events); }) == Scanner::Wait::kAgain) {
        }
        if (events) {
            return nb::cast(new Segment(std::move(events), is_text_),
                            nb::rv_policy::take_ownership);
        }
        raise_failure();
        return nb::none();
    }

    nb::str string(size_t id) const {
        const std::optional<std::string_view> text = scanner_->string(id);
        if (!text) throw nb::index_error("no such string");
        return decoded(*text);
    }

    // The end of each string in the joined texts, and these.
    nb::tuple string_table() const {
        Column<int64_t> ends;
        Column<uint8_t> bytes;
        for (std::string_view text : scanner_->strings()) {
            if (!text.empty()) std::memcpy(bytes.extend(text.size()), text.data(), text.size());
            ends.push_back(static_cast<int64_t>(bytes.size()));
        }
        return nb::make_tuple(to_numpy(&ends), to_numpy(&bytes));
    }

    nb::list tracks() const {
        nb::list pairs;
        for (std::string_view track : scanner_->tracks()) {
            const auto [pid, tid] = trnscope::split_track(track);
            pairs.append(nb::make_tuple(decoded(pid), decoded(tid)));
        }
        return pairs;
    }

    nb::list metadata() const {
        nb::list members;
        for (const auto& [key, json] : result().info().metadata) {
            members.append(nb::make_tuple(decoded(key), nb::bytes(json.data(), json.size())));
        }
        return members;
    }

    nb::list damage() const {
        nb::list found;
        for (size_t i = 0; i < trnscope::kNumDamageKinds; ++i) {
            const auto kind = static_cast<DamageKind>(i);
            const auto& entry = result().damage()[kind];
            if (entry.count == 0) continue;
            found.append(
                nb::make_tuple(trnscope::damage_name(kind), entry.count, entry.first_offset));
        }
        return found;
    }

    const char* document_kind() const {
        switch (result().info().kind) {
            case trnscope::DocumentKind::kObject:
                return "object";
            case trnscope::DocumentKind::kArray:
                return "array";
            default:
                return "none";
        }
    }

    uint32_t num_documents() const { return result().info().num_documents; }
    bool saw_trace_events() const { return result().info().saw_trace_events; }
    bool ended_cleanly() const { return result().info().ended_cleanly; }
    uint64_t bytes_scanned() const { return scanner_->bytes_scanned(); }

  private:
    static uint32_t positive(int64_t value, int64_t limit) {
        if (value < 1 || value > limit) throw nb::value_error("a size is out of range");
        return static_cast<uint32_t>(value);
    }

    // Runs a step that may wait, without the GIL; then lets Python handle signals.
    template <typename Step>
    static Scanner::Wait wait(Step step) {
        Scanner::Wait outcome;
        {
            const nb::gil_scoped_release release;
            outcome = step();
        }
        if (outcome == Scanner::Wait::kAgain) check_signals();
        return outcome;
    }

    const trnscope::Sequencer& result() const {
        if (!scanner_->is_finished()) {
            throw std::runtime_error("the input has not been read to its end");
        }
        return scanner_->result();
    }

    void raise_failure() const {
        const Scanner::Failure failure = scanner_->failure();
        if (failure.error_number != 0) raise_os_error(failure.error_number, path_);
        if (!failure.message.empty()) throw std::runtime_error(failure.message);
    }

    std::vector<bool> is_text_;
    std::string path_;
    std::optional<Scanner> scanner_;
};

}  // namespace

void bind_scan(nb::module_& m) {
    nb::class_<Segment>(m, "Segment")
        .def_ro("num_events", &Segment::num_events)
        .def_ro("ph", &Segment::ph)
        .def_ro("flags", &Segment::flags)
        .def_ro("category", &Segment::category)
        .def_ro("name", &Segment::name)
        .def_ro("track", &Segment::track)
        .def_ro("ts_ns", &Segment::ts_ns)
        .def_ro("dur_ns", &Segment::dur_ns)
        .def_ro("id", &Segment::id)
        .def_ro("args_offset", &Segment::args_offset)
        .def_ro("args_length", &Segment::args_length)
        .def("attribute", &Segment::attribute, nb::arg("k"))
        .def("counters", [](const Segment& segment) { return segment.counters; });

    nb::class_<PyScanner>(m, "Scanner")
        .def(nb::init<const std::vector<std::pair<std::string, std::string>>&, int64_t, int64_t,
                      int64_t, int64_t>(),
             nb::arg("arg_keys"), nb::arg("threads") = 1, nb::arg("segment_events") = 1'000'000,
             nb::arg("window_bytes") = 1 << 20, nb::arg("max_event_bytes") = 64 << 20)
        .def("open", &PyScanner::open, nb::arg("path"))
        .def("feed", &PyScanner::feed, nb::arg("buffer"))
        .def("close_input", &PyScanner::close_input)
        .def("stop", &PyScanner::stop)
        .def("next_segment", &PyScanner::next_segment)
        .def("string", &PyScanner::string, nb::arg("id"))
        .def("string_table", &PyScanner::string_table)
        .def("tracks", &PyScanner::tracks)
        .def("metadata", &PyScanner::metadata)
        .def("damage", &PyScanner::damage)
        .def("document_kind", &PyScanner::document_kind)
        .def("num_documents", &PyScanner::num_documents)
        .def("saw_trace_events", &PyScanner::saw_trace_events)
        .def("ended_cleanly", &PyScanner::ended_cleanly)
        .def("bytes_scanned", &PyScanner::bytes_scanned);
}
