// Tensor files: round trips of every type, what numpy writes, and one bad file per rule.
#include "support/tensor_file.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <random>

#include "support/file.h"

namespace dla {
namespace {

using Bytes = std::vector<uint8_t>;

std::string TempPath(const std::string& name) {
  return Concat(testing::TempDir(), "/dla_", getpid(), "_", name);
}

Tensor Sample(ElementType type, std::vector<int64_t> shape) {
  Tensor tensor{.name = "a/b:0", .type = type, .shape = std::move(shape), .bytes = {}};
  const int64_t elements = *CountElements(tensor.shape);
  for (int64_t i = 0; i < TypeBytes(type, elements); ++i) {
    tensor.bytes.push_back(static_cast<uint8_t>(type == ElementType::kBool ? i % 2 : i * 7 + 1));
  }
  return tensor;
}

// An .npy file with this header text and data.
Bytes Npy(const std::string& header, const Bytes& data, uint8_t version = 1) {
  const std::string magic = "\x93NUMPY";
  Bytes out(magic.begin(), magic.end());
  out.insert(out.end(), {version, 0});
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    out.push_back(static_cast<uint8_t>(header.size() >> (8 * i)));
  }
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), data.begin(), data.end());
  return out;
}
std::string Refusal(const Result<Tensor>& tensor) {
  return tensor.ok() ? "" : tensor.status().message();
}

TEST(Npy, RoundTripsEveryTypeThatItHas) {
  for (int t = 0; t < kElementTypeCount; ++t) {
    const auto type = static_cast<ElementType>(t);
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {2, 1000, 3}, {0, 4}}) {
      Tensor tensor = Sample(type, shape);
      const auto read = ParseNpy(EncodeNpy(tensor), "x.npy");
      ASSERT_TRUE(read.ok()) << read.status().message();
      EXPECT_EQ(read->shape, shape);
      if (TypeBits(type) == 4) {  // one byte an element
        EXPECT_EQ(static_cast<int64_t>(read->bytes.size()), *CountElements(shape));
        continue;
      }
      EXPECT_EQ(read->type, type == ElementType::kBF16 ? ElementType::kU16 : type);
      EXPECT_EQ(read->bytes, tensor.bytes);
    }
  }
  const Tensor packed{.name = "", .type = ElementType::kI4, .shape = {3}, .bytes = {0x8f, 0x07}};
  EXPECT_EQ(ParseNpy(EncodeNpy(packed), "x")->bytes, (Bytes{0xff, 0xf8, 0x07}));
}

TEST(Npy, WritesWhatNumpyWrites) {
  const Bytes file = EncodeNpy(Sample(ElementType::kF32, {2, 3}));
  ASSERT_EQ(file.size(), 128u + 24u);
  EXPECT_EQ(std::string(file.begin() + 10, file.begin() + 70),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } ");
  EXPECT_EQ(file[127], '\n');
  const Bytes vector = EncodeNpy(Sample(ElementType::kU8, {5}));
  EXPECT_EQ(std::string(vector.begin() + 10, vector.begin() + 67),
            "{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }");
}

TEST(Npy, ReadsVersionsOrdersAndSpellings) {
  const Bytes data = {1, 2, 3, 4, 5, 6};
  for (const uint8_t version : {uint8_t{1}, uint8_t{2}, uint8_t{3}}) {
    const auto tensor = ParseNpy(
        Npy("{'shape': (2, 3L), \"descr\": '|u1', 'fortran_order': False}\n", data, version), "x");
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    EXPECT_EQ(tensor->bytes, data);
  }
  const auto columns =
      ParseNpy(Npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", data), "x");
  EXPECT_EQ(columns->bytes, (Bytes{1, 3, 5, 2, 4, 6}));
  const auto big =
      ParseNpy(Npy("{'descr': '>i2', 'fortran_order': False, 'shape': (3,), }\n", data), "x");
  EXPECT_EQ(big->bytes, (Bytes{2, 1, 4, 3, 6, 5}));
  const auto truth =
      ParseNpy(Npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }\n", {2, 0}), "x");
  EXPECT_EQ(truth->bytes, (Bytes{1, 0}));
}

TEST(Npy, FortranOrderOfThreeAxes) {
  // Element (i, j, k) of a 2 x 3 x 4 array is 12 i + 4 j + k.
  Bytes columns;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) columns.push_back(static_cast<uint8_t>(12 * i + 4 * j + k));
    }
  }
  const auto tensor = ParseNpy(
      Npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }\n", columns), "x");
  ASSERT_TRUE(tensor.ok());
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(tensor->bytes[i], i);
}

TEST(Npy, BadFilesSayWhy) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n";
  const Bytes data(4, 0);
  const auto refusal = [&](const std::string& header, const Bytes& bytes = Bytes(4, 0)) {
    return Refusal(ParseNpy(Npy(header, bytes), "x.npy"));
  };
  EXPECT_EQ(refusal(good), "");
  EXPECT_EQ(Refusal(ParseNpy(Bytes(20, 1), "x.npy")),
            "x.npy: is no .npy array (it does not begin with '\\x93NUMPY')");
  EXPECT_EQ(Refusal(ParseNpy({}, "x.npy")),
            "x.npy: is no .npy array (it does not begin with '\\x93NUMPY')");
  EXPECT_EQ(Refusal(ParseNpy(Npy(good, data, 9), "x.npy")),
            "x.npy: has .npy version 9; 1 to 3 exist");
  Bytes longer = Npy(good, data);
  longer[9] = 255;
  EXPECT_EQ(Refusal(ParseNpy(longer, "x.npy")),
            Concat("x.npy: its header has ", 255 * 256 + good.size(), " bytes, ", good.size() + 4,
                   " remain"));
  const std::string bad_header =
      "x.npy: its header is not {'descr': '...', 'fortran_order': True or False, 'shape': (...)}";
  EXPECT_EQ(refusal("{'fortran_order': False, 'shape': (1,), }\n"), bad_header);
  EXPECT_EQ(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (1+1,), }\n"), bad_header);
  EXPECT_EQ(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x\n"), bad_header);
  EXPECT_EQ(refusal("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n"),
            bad_header);
  EXPECT_EQ(refusal("__import__('os').system('true')\n"), bad_header);
  for (const char* type : {"|O", "<c8", "<U4", "|S3", "<f3", "|f4", "<m8[ns]"}) {
    EXPECT_EQ(refusal(Concat("{'descr': '", type, "', 'fortran_order': False, 'shape': (1,)}\n")),
              Concat("x.npy: type '", type,
                     "' is not one that tensors have (f2, f4, f8, i1 to i8, u1 to u8, b1)"));
  }
  for (const char* shape : {"(-1,)", "(1152921504606846976,)", "(4294967296, 4294967296)"}) {
    EXPECT_EQ(refusal(Concat("{'descr': '<f4', 'fortran_order': False, 'shape': ", shape, "}\n")),
              "x.npy: its shape is impossible or too large");
  }
  EXPECT_EQ(refusal(good, Bytes(3, 0)), "x.npy: its shape needs 4 bytes of data, it has 3");
  EXPECT_EQ(refusal(good, Bytes(5, 0)), "x.npy: its shape needs 4 bytes of data, it has 5");
}

TEST(Npz, RoundTripsNamesTypesAndBytes) {
  std::vector<Tensor> tensors = {Sample(ElementType::kF32, {2, 3}), Sample(ElementType::kI64, {}),
                                 Sample(ElementType::kBool, {0})};
  tensors[1].name = "../up:1/\xc3\xa9";
  tensors[2].name = "";
  const std::string path = TempPath("round.npz");
  ASSERT_TRUE(WriteNpz(path, tensors).ok());
  const auto read = ReadNpz(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, tensors);
  const auto once = *ReadFile(path);
  ASSERT_TRUE(WriteNpz(path, tensors).ok());
  EXPECT_EQ(*ReadFile(path), once);
}

TEST(Npz, LimitsSkipAndRefuse) {
  const std::string path = TempPath("limit.npz");
  const std::vector<Tensor> tensors = {Sample(ElementType::kF32, {300000})};
  ASSERT_TRUE(WriteNpz(path, tensors).ok());
  EXPECT_TRUE(ReadNpz(path, [](const std::string&) { return int64_t{-1}; })->empty());
  EXPECT_TRUE(ReadNpz(path, [](const std::string&) { return int64_t{1200000}; }).ok());
  EXPECT_EQ(ReadNpz(path, [](const std::string&) { return int64_t{24}; }).status().message(),
            path + ": array 'a/b:0': has 1200128 bytes; at most 24 are wanted");
}

void Put(Bytes* out, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) out->push_back(static_cast<uint8_t>(value >> (8 * i)));
}

// An archive of one deflated member whose sizes are only in the directory (streamed), with a
// comment at its end.
Bytes DeflatedArchive(const Bytes& data, uint64_t claimed_bytes) {
  Bytes packed(data.size() + 100);
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = const_cast<Bytef*>(data.data());
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  const uint32_t crc = static_cast<uint32_t>(crc32_z(0, data.data(), data.size()));
  Bytes out;
  const auto common = [&](bool sizes) {
    for (const uint64_t v : std::vector<uint64_t>{20, 8, 8, 0, 0}) Put(&out, v, 2);
    Put(&out, sizes ? crc : 0, 4);
    Put(&out, sizes ? packed.size() : 0, 4);
    Put(&out, sizes ? claimed_bytes : 0, 4);
    Put(&out, 5, 2), Put(&out, 0, 2);
  };
  const std::string name = "x.npy", comment = "PK a comment";
  Put(&out, 0x04034b50, 4), common(false);
  out.insert(out.end(), name.begin(), name.end());
  out.insert(out.end(), packed.begin(), packed.end());
  const size_t start = out.size();
  Put(&out, 0x02014b50, 4), Put(&out, 20, 2), common(true);
  Put(&out, 0, 14), Put(&out, 0, 0);
  while (out.size() < start + 46) out.push_back(0);
  out.insert(out.end(), name.begin(), name.end());
  const size_t end = out.size();
  Put(&out, 0x06054b50, 4), Put(&out, 0, 4), Put(&out, 1, 2), Put(&out, 1, 2);
  Put(&out, end - start, 4), Put(&out, start, 4), Put(&out, comment.size(), 2);
  out.insert(out.end(), comment.begin(), comment.end());
  return out;
}

TEST(Npz, ReadsDeflatedStreamedArchivesWithComments) {
  const Tensor tensor = Sample(ElementType::kF32, {1000});
  const Bytes data = EncodeNpy(tensor);
  const auto read = ParseNpz(DeflatedArchive(data, data.size()), "x.npz");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].name, "x");
  EXPECT_EQ((*read)[0].bytes, tensor.bytes);
}

TEST(Npz, BadArchivesSayWhy) {
  const Bytes data = EncodeNpy(Sample(ElementType::kF32, {1000}));
  const auto refusal = [](const Bytes& bytes) {
    const auto read = ParseNpz(bytes, "x.npz");
    return read.ok() ? std::string() : read.status().message();
  };
  EXPECT_EQ(refusal({1, 2, 3}), "x.npz: is no zip archive (too short)");
  EXPECT_EQ(refusal(Bytes(100, 7)), "x.npz: is no zip archive, or cut off (it has no directory)");
  EXPECT_EQ(refusal(DeflatedArchive(data, data.size() + 1)),
            "x.npz: array 'x': its compressed data is damaged");
  EXPECT_EQ(refusal(DeflatedArchive(data, data.size() - 1)),
            "x.npz: array 'x': its compressed data is damaged");
  EXPECT_NE(refusal(DeflatedArchive(data, 4000000000)).find("cannot unpack to 4000000000 bytes"),
            std::string::npos);
  Bytes stored;
  {
    const std::string path = TempPath("bad.npz");
    const std::vector<Tensor> tensors = {Sample(ElementType::kF32, {10})};
    ASSERT_TRUE(WriteNpz(path, tensors).ok());
    stored = *ReadFile(path);
  }
  Bytes damaged = stored;
  damaged[170] ^= 1;
  EXPECT_EQ(refusal(damaged), "x.npz: array 'a/b:0': its checksum is wrong: it is damaged");
  damaged = stored;
  damaged[damaged.size() - 3] = 255;  // offset of the directory
  EXPECT_NE(refusal(damaged).find("is not within the file"), std::string::npos);
  const std::string path = TempPath("twice.npz");
  const std::vector<Tensor> twice = {Sample(ElementType::kF32, {1}),
                                     Sample(ElementType::kF32, {1})};
  ASSERT_TRUE(WriteNpz(path, twice).ok());
  EXPECT_EQ(ReadNpz(path).status().message(), path + ": array 'a/b:0' is there twice");
}

TEST(TensorProto, RoundTripsEveryType) {
  for (int t = 0; t < kElementTypeCount; ++t) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {2, 300}, {0}}) {
      const Tensor tensor = Sample(static_cast<ElementType>(t), shape);
      const auto read = ParseTensorProto(EncodeTensorProto(tensor), "x.pb");
      ASSERT_TRUE(read.ok()) << read.status().message();
      EXPECT_EQ(*read, tensor);
    }
  }
}

TEST(TensorProto, ReadsTypedFieldsPackedAndNot) {
  // dims 2 (packed), float, float_data packed 1 and 2.
  EXPECT_EQ(
      ParseTensorProto(Bytes{0x0a, 1, 2, 0x10, 1, 0x22, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, "x")
          ->bytes,
      (Bytes{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}));
  // dims 2, int8, int32_data -1 and 5, one by one.
  EXPECT_EQ(
      ParseTensorProto(
          Bytes{8, 2, 0x10, 3, 0x28, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0x28, 5}, "x")
          ->bytes,
      (Bytes{255, 5}));
}

TEST(TensorProto, BadMessagesSayWhy) {
  const auto refusal = [](const Bytes& bytes) { return Refusal(ParseTensorProto(bytes, "x.pb")); };
  EXPECT_EQ(refusal({}), "x.pb: is no TensorProto (it has no element type)");
  EXPECT_EQ(refusal({8}), "x.pb: is no TensorProto, or damaged");
  EXPECT_EQ(refusal({0x4a, 200, 1, 0}), "x.pb: is no TensorProto, or damaged");
  EXPECT_EQ(refusal({0x10, 99}), "x.pb: element type 99 is unknown");
  EXPECT_EQ(refusal({0x10, 8}), "x.pb: element type 8 is unknown");
  EXPECT_EQ(refusal({8, 3, 0x10, 2, 0x4a, 2, 1, 2}),
            "x.pb: its shape needs 3 bytes of data, it has 2");
  EXPECT_EQ(refusal({8, 255, 255, 255, 255, 255, 255, 255, 255, 127, 0x10, 2}),
            "x.pb: its shape is impossible or too large");
  EXPECT_EQ(refusal({8, 1, 0x10, 1, 0x28, 1}), "x.pb: its data is not in the field of type f32");
  EXPECT_EQ(refusal({8, 1, 0x10, 6}), "x.pb: its shape needs 1 elements, it has 0");
  EXPECT_EQ(refusal({8, 1, 0x10, 6, 0x70, 1}), "x.pb: data outside of the file");
}

TEST(DataSet, ReadsTheFilesInOrder) {
  const std::string folder = TempPath("data_set");
  std::filesystem::create_directories(folder);
  for (int i = 0; i < 12; ++i) {
    Tensor tensor = Sample(ElementType::kU8, {i + 1});
    ASSERT_TRUE(WriteTensor(Concat(folder, "/input_", i, ".pb"), tensor).ok());
  }
  const auto inputs = ReadDataSet(folder, "input");
  ASSERT_EQ(inputs->size(), 12u);
  EXPECT_EQ((*inputs)[11].shape, (std::vector<int64_t>{12}));
  EXPECT_TRUE(ReadDataSet(folder, "output")->empty());
  EXPECT_EQ(ReadDataSet(folder + "/no", "input").status().code(), ErrorCode::kIo);
  std::filesystem::remove_all(folder);
}

// Any damage is refused or read, and never asks for more than the file justifies.
TEST(TensorFile, RandomDamageIsSurvived) {
  const uint64_t seed = 99;
  std::mt19937_64 random(seed);
  const Tensor tensor = Sample(ElementType::kF32, {5, 7});
  const Bytes npy = EncodeNpy(tensor);
  const std::vector<Bytes> files = {npy, EncodeTensorProto(tensor),
                                    DeflatedArchive(npy, npy.size())};
  for (int round = 0; round < 60000; ++round) {
    Bytes bytes = files[static_cast<size_t>(round) % 3];
    for (uint64_t d = 0; d < 1 + random() % 4; ++d) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    Result<Tensor> read = Malformed("not read");
    if (round % 3 == 0) read = ParseNpy(bytes, "x");
    if (round % 3 == 1) read = ParseTensorProto(bytes, "x");
    if (round % 3 == 2) {
      const auto all = ParseNpz(bytes, "x");
      if (all.ok() && !all->empty()) read = (*all)[0];
    }
    if (!read.ok()) continue;
    const auto elements = CountElements(read->shape);
    ASSERT_TRUE(elements.has_value()) << "seed " << seed << " round " << round;
    ASSERT_EQ(TypeBytes(read->type, *elements), static_cast<int64_t>(read->bytes.size()));
    ASSERT_LE(read->bytes.size(), size_t{1} << 20);
  }
}

}  // namespace
}  // namespace dla
