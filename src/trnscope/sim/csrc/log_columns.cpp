#include "log_columns.h"

#include <pybind11/numpy.h>

#include "timeline.h"

namespace trnscope::sim {
namespace {

namespace py = pybind11;

template <typename Value, typename Record>
void add_column(py::dict& columns, const char* name, const std::vector<Record>& records,
                Value Record::* field) {
    py::array_t<Value> column(static_cast<py::ssize_t>(records.size()));
    auto cells = column.template mutable_unchecked<1>();
    for (std::size_t i = 0; i < records.size(); ++i) {
        cells(static_cast<py::ssize_t>(i)) = records[i].*field;
    }
    columns[name] = std::move(column);
}

template <typename Kind, typename Record>
void add_kinds(py::dict& columns, const std::vector<Record>& records, Kind Record::* field) {
    py::array_t<std::uint8_t> column(static_cast<py::ssize_t>(records.size()));
    auto cells = column.template mutable_unchecked<1>();
    for (std::size_t i = 0; i < records.size(); ++i) {
        cells(static_cast<py::ssize_t>(i)) = static_cast<std::uint8_t>(records[i].*field);
    }
    columns["kind"] = std::move(column);
}

}  // namespace

py::dict launch_columns() {
    const std::vector<LaunchRecord> records = Timeline::instance().launches();
    py::dict columns;
    add_column(columns, "sequence_id", records, &LaunchRecord::sequence_id);
    add_column(columns, "signature", records, &LaunchRecord::signature);
    add_kinds(columns, records, &LaunchRecord::kind);
    add_column(columns, "core", records, &LaunchRecord::core);
    add_column(columns, "stream", records, &LaunchRecord::stream);
    add_column(columns, "thread", records, &LaunchRecord::thread);
    add_column(columns, "correlation_id", records, &LaunchRecord::correlation_id);
    add_column(columns, "host_start_ns", records, &LaunchRecord::host_start_ns);
    add_column(columns, "host_end_ns", records, &LaunchRecord::host_end_ns);
    add_column(columns, "compile_ns", records, &LaunchRecord::compile_ns);
    add_column(columns, "device_start_ns", records, &LaunchRecord::device_start_ns);
    add_column(columns, "device_end_ns", records, &LaunchRecord::device_end_ns);
    add_column(columns, "host_real_ns", records, &LaunchRecord::host_real_ns);
    add_column(columns, "bytes", records, &LaunchRecord::bytes);
    return columns;
}

py::dict wait_columns() {
    const std::vector<WaitRecord> records = Timeline::instance().waits();
    py::dict columns;
    add_kinds(columns, records, &WaitRecord::kind);
    add_column(columns, "core", records, &WaitRecord::core);
    add_column(columns, "stream", records, &WaitRecord::stream);
    add_column(columns, "thread", records, &WaitRecord::thread);
    add_column(columns, "host_start_ns", records, &WaitRecord::host_start_ns);
    add_column(columns, "host_end_ns", records, &WaitRecord::host_end_ns);
    add_column(columns, "host_real_ns", records, &WaitRecord::host_real_ns);
    return columns;
}

}  // namespace trnscope::sim
