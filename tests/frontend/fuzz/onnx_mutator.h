// Mutations of a parsed ONNX model, so that a fuzzer reaches what lies behind the wire format.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>

namespace dla::frontend {

// Changes one place of the message, chosen by the seed: sets a field to a telling value or to what
// another field of its kind holds, clears it, or removes, repeats, exchanges or grafts a part.
// Names are taken from the message itself, so that most changes rewire the graph.
void MutateMessage(google::protobuf::Message* message, uint32_t seed);

}  // namespace dla::frontend
