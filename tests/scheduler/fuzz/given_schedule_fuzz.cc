// Any text as a schedule or as pins: refused with a message, or read.
#include "scheduler/given_schedule.h"
#include "scheduler/pins.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)dla::scheduler::ParseGivenSchedule(text).ok();
  (void)dla::scheduler::ParsePins(text).ok();
  return 0;
}
