// What a value that stays on chip has to do with DRAM.
#pragma once

namespace dla::scheduler {

struct Through {
  bool loaded = false;  // the first group that reads it loads all of it
  bool stored = false;  // those that make it store it as well: others read it from DRAM
  bool kept = false;    // it stays for later inferences, and only the first one loads it

  bool operator==(const Through&) const = default;
};

}  // namespace dla::scheduler
