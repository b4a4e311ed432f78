// A run over time, for chrome://tracing and Perfetto.
//
// The JSON array format of Chrome's trace events: a process for the machine and one for the groups;
// a thread (a row) for each engine, with an event for every stretch of work and, on a row below, of
// waiting; work is named after the group's ONNX node, waiting after its cause. Times are in
// microseconds of the machine's clock; `args` has cycles and steps.
#pragma once

#include <memory>
#include <string>

#include "machine/program.h"
#include "runtime/run_result.h"
#include "support/file.h"
#include "support/status.h"

namespace dla::runtime {

class TraceFile {
 public:
  // Begins a file; kIo as of AtomicFile. `program` must live as long as the object.
  static Result<std::unique_ptr<TraceFile>> Create(const std::string& path,
                                                   const machine::Program& program);
  void Add(const TraceEvent& event);
  // Ends the file with a row of groups, run by run, and gives it its name. A failed write shows up
  // here.
  Status Commit(const RunResult& result, int64_t runs);

 private:
  TraceFile(std::unique_ptr<AtomicFile> file, const machine::Program& program);
  // The groups of a run that begins then; when it ends.
  int64_t AddGroups(const Counts& result, int64_t begin);
  void Write(const std::string& text);
  void NameRow(int process, int row, std::string_view name);
  // An event of a row; `args` is JSON.
  void Event(int process, int row, std::string_view name, std::string_view category, int64_t begin,
             int64_t end, const std::string& args);

  std::unique_ptr<AtomicFile> file_;
  const machine::Program* program_;
  std::vector<std::string> names_;  // of the groups, as JSON strings
  Status status_;
};

}  // namespace dla::runtime
