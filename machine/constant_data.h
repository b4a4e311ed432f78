// The packed constants of a program: owned bytes, or a view of something that `owner` keeps alive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dla::machine {

struct ConstantData {
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> owner;

  static ConstantData Own(std::vector<uint8_t> data) {
    auto owned = std::make_shared<const std::vector<uint8_t>>(std::move(data));
    return {.bytes = {owned->data(), owned->size()}, .owner = owned};
  }
};

}  // namespace dla::machine
