#pragma once
// Which functions of Python run, told to the observer by the interpreter's own hook for profilers.

namespace trnscope::sim {

// From now on those of this thread, and those that are running already. Needs the interpreter's
// lock. False, and nothing happens, where another profiler of Python has the hook.
bool begin_python_calls();
// False where another profiler has taken the hook meanwhile: what was recorded is not all.
bool end_python_calls();

}  // namespace trnscope::sim
