#include "onnx_mutator.h"

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace dla::frontend {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

using Random = std::mt19937;

size_t Below(Random* random, size_t end) { return (*random)() % end; }

// A field of a message of the tree; every message has one site for each field of its type.
struct Site {
  Message* message;
  const FieldDescriptor* field;
};

void Collect(Message* message, std::vector<Site>* sites, std::vector<Message*>* messages) {
  messages->push_back(message);
  const auto* type = message->GetDescriptor();
  const Reflection* reflection = message->GetReflection();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    sites->push_back({message, field});
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (field->is_repeated()) {
      for (int k = 0; k < reflection->FieldSize(*message, field); ++k) {
        Collect(reflection->MutableRepeatedMessage(message, field, k), sites, messages);
      }
    } else if (reflection->HasField(*message, field)) {
      Collect(reflection->MutableMessage(message, field), sites, messages);
    }
  }
}

int64_t TellingInteger(Random* random, int64_t old) {
  constexpr int64_t kTelling[] = {
      0,       1,         -1,           2,         3,         7,  10, 16, 127, 255, -128, 65535,
      1 << 20, 1LL << 31, -(1LL << 31), 1LL << 40, 1LL << 62, -2, -3};
  switch (Below(random, 4)) {
    case 0:
      return old == std::numeric_limits<int64_t>::max() ? old : old + 1;
    case 1:
      return old == std::numeric_limits<int64_t>::min() ? old : old - 1;
    case 2: {
      constexpr int64_t kEnds[] = {std::numeric_limits<int64_t>::max(),
                                   std::numeric_limits<int64_t>::min()};
      return kEnds[Below(random, 2)];
    }
    default:
      return kTelling[Below(random, std::size(kTelling))];
  }
}

double TellingReal(Random* random) {
  constexpr double kTelling[] = {0,
                                 1,
                                 -1,
                                 0.5,
                                 1e-30,
                                 1e38,
                                 -2,
                                 3,
                                 std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()};
  return kTelling[Below(random, std::size(kTelling))];
}

// A string that some field of the message tree holds, or a new one.
std::string OtherString(Random* random, const std::vector<Site>& sites) {
  for (int tries = 0; tries < 16; ++tries) {
    const Site& site = sites[Below(random, sites.size())];
    if (site.field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) continue;
    const Reflection* reflection = site.message->GetReflection();
    if (!site.field->is_repeated()) return reflection->GetString(*site.message, site.field);
    const int size = reflection->FieldSize(*site.message, site.field);
    if (size == 0) continue;
    return reflection->GetRepeatedString(
        *site.message, site.field, static_cast<int>(Below(random, static_cast<size_t>(size))));
  }
  constexpr const char* kNew[] = {"", "x", "Conv", "Reshape", "..", "/", "N"};
  return kNew[Below(random, std::size(kNew))];
}

std::string NewString(Random* random, const std::vector<Site>& sites, const std::string& old) {
  if (old.empty() || Below(random, 4) != 0) return OtherString(random, sites);
  std::string text = old;
  const size_t at = Below(random, text.size());
  if (Below(random, 2) == 0) {
    text.erase(at, 1 + Below(random, text.size() - at));
  } else {
    text[at] = static_cast<char>((*random)());
  }
  return text;
}

// Sets a field, or element `index` of a repeated one (-1: adds one), to a new value.
void SetValue(const Site& site, int index, const std::vector<Site>& sites, Random* random) {
  Message* m = site.message;
  const FieldDescriptor* f = site.field;
  const Reflection* r = m->GetReflection();
  const bool repeated = f->is_repeated();
#define DLA_SET(TYPE, NEW)                                                        \
  do {                                                                            \
    if (!repeated) {                                                              \
      r->Set##TYPE(m, f, NEW(r->Get##TYPE(*m, f)));                               \
    } else if (index < 0) {                                                       \
      r->Add##TYPE(m, f, NEW({}));                                                \
    } else {                                                                      \
      r->SetRepeated##TYPE(m, f, index, NEW(r->GetRepeated##TYPE(*m, f, index))); \
    }                                                                             \
    return;                                                                       \
  } while (false)
  const auto integer = [&](int64_t old) { return TellingInteger(random, old); };
  const auto small = [&](int32_t old) { return static_cast<int32_t>(TellingInteger(random, old)); };
  const auto natural32 = [&](uint32_t old) { return static_cast<uint32_t>(integer(old)); };
  const auto natural64 = [&](uint64_t old) {
    return static_cast<uint64_t>(integer(static_cast<int64_t>(old)));
  };
  const auto real = [&](double) { return TellingReal(random); };
  const auto single = [&](float) { return static_cast<float>(TellingReal(random)); };
  const auto text = [&](const std::string& old) { return NewString(random, sites, old); };
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      DLA_SET(Int32, small);
    case FieldDescriptor::CPPTYPE_INT64:
      DLA_SET(Int64, integer);
    case FieldDescriptor::CPPTYPE_UINT32:
      DLA_SET(UInt32, natural32);
    case FieldDescriptor::CPPTYPE_UINT64:
      DLA_SET(UInt64, natural64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      DLA_SET(Double, real);
    case FieldDescriptor::CPPTYPE_FLOAT:
      DLA_SET(Float, single);
    case FieldDescriptor::CPPTYPE_STRING:
      DLA_SET(String, text);
    default:
      break;
  }
#undef DLA_SET
}

// Puts a copy of another message of the same type into the site.
void Graft(const Site& site, int index, const std::vector<Message*>& messages, Random* random) {
  std::vector<const Message*> same;
  for (const Message* message : messages) {
    if (message->GetDescriptor() == site.field->message_type()) same.push_back(message);
  }
  if (same.empty()) return;
  // Copied first: the source may contain the site or lie in it.
  const Message* source = same[Below(random, same.size())];
  const std::unique_ptr<Message> copy(source->New());
  copy->CopyFrom(*source);
  const Reflection* r = site.message->GetReflection();
  Message* target = !site.field->is_repeated() ? r->MutableMessage(site.message, site.field)
                    : index < 0                ? r->AddMessage(site.message, site.field)
                                : r->MutableRepeatedMessage(site.message, site.field, index);
  target->CopyFrom(*copy);
}

void MutateRepeated(const Site& site, const std::vector<Site>& sites,
                    const std::vector<Message*>& messages, Random* random) {
  const Reflection* r = site.message->GetReflection();
  const int size = r->FieldSize(*site.message, site.field);
  const int index = size == 0 ? -1 : static_cast<int>(Below(random, static_cast<size_t>(size)));
  const bool is_message = site.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  switch (Below(random, 5)) {
    case 0:
      if (size == 0) return;
      r->SwapElements(site.message, site.field, index, size - 1);
      return r->RemoveLast(site.message, site.field);
    case 1:
      if (size == 0) return;
      return r->SwapElements(site.message, site.field, index,
                             static_cast<int>(Below(random, static_cast<size_t>(size))));
    case 2:
      if (is_message) return Graft(site, -1, messages, random);
      return SetValue(site, -1, sites, random);
    default:
      if (is_message) return Graft(site, index, messages, random);
      return SetValue(site, index, sites, random);
  }
}

void MutateSingle(const Site& site, const std::vector<Site>& sites,
                  const std::vector<Message*>& messages, Random* random) {
  const Reflection* r = site.message->GetReflection();
  if (r->HasField(*site.message, site.field) && Below(random, 4) == 0) {
    return r->ClearField(site.message, site.field);
  }
  if (site.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return Graft(site, -1, messages, random);
  }
  if (site.field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const auto* type = site.field->enum_type();
    const int value = static_cast<int>(Below(random, static_cast<size_t>(type->value_count())));
    return r->SetEnum(site.message, site.field, type->value(value));
  }
  SetValue(site, -1, sites, random);
}

}  // namespace

void MutateMessage(Message* message, uint32_t seed) {
  Random random(seed);
  std::vector<Site> sites;
  std::vector<Message*> messages;
  Collect(message, &sites, &messages);
  // Fields that are there are the more telling ones, so an absent one gets a second draw.
  Site site = sites[Below(&random, sites.size())];
  for (int tries = 0; tries < 4; ++tries) {
    const Reflection* r = site.message->GetReflection();
    const bool there = site.field->is_repeated() ? r->FieldSize(*site.message, site.field) > 0
                                                 : r->HasField(*site.message, site.field);
    if (there) break;
    site = sites[Below(&random, sites.size())];
  }
  if (site.field->is_repeated()) {
    MutateRepeated(site, sites, messages, &random);
  } else {
    MutateSingle(site, sites, messages, &random);
  }
}

}  // namespace dla::frontend
