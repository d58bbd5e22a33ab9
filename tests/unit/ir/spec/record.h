// Reads the recorded outputs of PyTorch (tests/corpus/record/README.md says what stands where).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/dtype.h"
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <zlib.h>

namespace cubridge::ir::record {

struct Numbers {
    std::vector<std::int64_t> shape;
    std::vector<double> values; ///< row major
};

/// A tensor (its dtype as the text leaves it), or a Python number, or None.
struct Item {
    char tag = 'n'; ///< n None, T tensor, b bool, i int, f float
    DType dtype = DType::F32;
    std::size_t array = 0; ///< T
    double number = 0;     ///< b, i, f
};

struct Case {
    enum class Kind { Program, Refused, Specification };
    std::string name, function, mask, refusal;
    Kind kind = Kind::Program;
    std::size_t text = 0;
    bool pinned = false; ///< float inputs count as operands, whose float32 values are known
    std::vector<std::pair<std::string, Item>> inputs;
    std::vector<Item> outputs;
};

struct Record {
    std::string head; ///< "cubridge-record 1 crc32 <of routines.json>\n"
    std::vector<std::string> texts;
    std::vector<Numbers> arrays;
    std::vector<Case> cases;
};

/// The bytes of a gzip file.
inline std::string inflate(const std::string& path) {
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
    if (!file) throw std::runtime_error("cannot open " + path);
    std::string out;
    char block[1 << 16];
    int n = 0;
    while ((n = gzread(file.get(), block, sizeof block)) > 0) out.append(block, static_cast<std::size_t>(n));
    if (n < 0) throw std::runtime_error("cannot decompress " + path);
    return out;
}

class Reader {
public:
    explicit Reader(const std::string& path) : bytes_(inflate(path)) {}

    Record record() {
        Record r;
        r.head = string();
        r.texts.resize(number<std::uint32_t>());
        for (auto& t : r.texts) t = string();
        r.arrays.resize(number<std::uint32_t>());
        for (auto& a : r.arrays) a = numbers();
        r.cases.resize(number<std::uint32_t>());
        for (auto& c : r.cases) c = one();
        return r;
    }

private:
    template <class T> T number() {
        T v;
        if (sizeof v > bytes_.size() - at_) throw std::runtime_error("a record ends early");
        std::memcpy(&v, bytes_.data() + at_, sizeof v); // little-endian, as every machine that runs this
        at_ += sizeof v;
        return v;
    }
    std::string string() {
        const auto n = number<std::uint32_t>();
        if (n > bytes_.size() - at_) throw std::runtime_error("a record ends early");
        at_ += n;
        return bytes_.substr(at_ - n, n);
    }
    double element(char form) {
        switch (form) {
        case 'b': return number<std::int8_t>();
        case 'h': return number<std::int16_t>();
        case 'q': return static_cast<double>(number<std::int64_t>());
        case 'f': return double{number<float>()};
        default: return number<double>();
        }
    }
    Numbers numbers() {
        Numbers out;
        const char form = number<char>();
        out.shape.resize(number<std::uint8_t>());
        std::int64_t n = 1;
        for (auto& s : out.shape) n *= s = number<std::uint32_t>();
        for (std::int64_t k = 0; k < n; ++k) out.values.push_back(element(form));
        return out;
    }
    Item item() {
        static constexpr DType types[] = {DType::Bool, DType::U8,  DType::I8,   DType::I16, DType::I32,
                                          DType::I64,  DType::F16, DType::BF16, DType::F32, DType::F64};
        Item i;
        i.tag = number<char>();
        if (i.tag == 'T') {
            i.dtype = types[number<std::uint8_t>()];
            i.array = number<std::uint32_t>();
        } else if (i.tag != 'n') {
            i.number = number<double>();
        }
        return i;
    }
    Case one() {
        Case c;
        c.name = string();
        c.kind = static_cast<Case::Kind>(number<std::uint8_t>());
        c.text = number<std::uint32_t>();
        c.function = string();
        c.mask = string();
        c.pinned = number<std::uint8_t>() != 0;
        c.inputs.resize(number<std::uint32_t>());
        for (auto& [name, i] : c.inputs) {
            name = string();
            i = item();
        }
        if (c.kind == Case::Kind::Refused) {
            c.refusal = string();
        } else {
            c.outputs.resize(number<std::uint32_t>());
            for (auto& i : c.outputs) i = item();
        }
        return c;
    }

    std::string bytes_;
    std::size_t at_ = 0;
};

} // namespace cubridge::ir::record
