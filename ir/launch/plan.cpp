// The launch plan as text: version line, one fact a line, "end". Read back strictly: what is not understood is an
// error. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/launch.h"
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace cubridge::ir::launch {
namespace {

constexpr std::string_view kVersion = "cubridge-plan 1";
constexpr std::array<const char*, 3> kConditions = {"equal", "at_least", "divides"};
constexpr std::array<const char*, 4> kTensors = {"q", "k", "v", "o"};
constexpr int kMostRows = 256; // of a box
constexpr int kMostStep = 1024;

std::string decimal(double v) {
    std::array<char, 40> buffer{};
    return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), v).ptr};
}

std::string escaped(const std::string& s) {
    std::string out;
    for (const char c : s) {
        if (c == '\n')
            out += "\\n";
        else if (c == '\\')
            out += "\\\\";
        else
            out += c;
    }
    return out;
}

std::string unescaped(std::string_view s) {
    std::string out;
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (s[i] != '\\' || i + 1 == s.size())
            out += s[i];
        else
            out += s[++i] == 'n' ? '\n' : s[i];
    }
    return out;
}

/// Hands out lines and words; the first thing that does not fit is a Failure that names the line.
class Reader {
public:
    explicit Reader(std::string_view text) : rest_(text) {}

    std::string_view line() {
        ++number_;
        const auto end = rest_.find('\n');
        if (end == rest_.npos) bad("the text ends early");
        const auto found = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        return found;
    }
    /// The rest of the next line, which must begin with `word`.
    std::string_view after(std::string_view word) {
        const auto found = line();
        if (!found.starts_with(word) || (found.size() > word.size() && found[word.size()] != ' '))
            bad("expected '" + std::string(word) + "'");
        return found.substr(std::min(word.size() + 1, found.size()));
    }
    bool at(std::string_view word) const {
        return rest_.starts_with(word) && rest_.size() > word.size() &&
               (rest_[word.size()] == ' ' || rest_[word.size()] == '\n');
    }
    bool done() const { return rest_.empty(); }
    Code code(std::string_view text) const {
        auto c = Code::parse(std::string(text));
        if (!c) bad(c.error().message);
        return *c;
    }
    template <class T> T number(std::string_view text) const {
        T value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size()) bad("'" + std::string(text) + "' is no number");
        return value;
    }
    std::vector<std::string_view> words(std::string_view text, std::size_t count) const {
        std::vector<std::string_view> out;
        while (!text.empty()) {
            const auto end = std::min(text.find(' '), text.size());
            out.push_back(text.substr(0, end));
            text.remove_prefix(std::min(end + 1, text.size()));
        }
        if (out.size() != count) bad("expected " + std::to_string(count) + " words");
        return out;
    }
    [[noreturn]] void bad(const std::string& why) const {
        fail("syntax", "launch plan, line " + std::to_string(number_) + ": " + why);
    }

private:
    std::string_view rest_;
    int number_ = 0;
};

Entry read_entry(Reader& r) {
    Entry e;
    const auto w = r.words(r.after("entry"), 7);
    e.name = w[0];
    for (std::size_t k = 0; k < 3; ++k) e.block[k] = r.number<int>(w[2 + k]);
    e.shared_bytes = r.number<int>(w[6]);
    if (w[1] != "block" || w[5] != "shared") r.bad("expected 'entry NAME block X Y Z shared BYTES'");
    for (auto& g : e.grid) g = r.code(r.after("grid"));
    return e;
}

Map read_map(Reader& r) {
    const auto line = r.after("map");
    const auto spaces = std::count(line.begin(), line.end(), ' ');
    const auto w = r.words(line, spaces > 1 ? 3 : 2);
    std::size_t t = 0;
    while (t < kTensors.size() && w[0] != kTensors[t]) ++t;
    if (t == kTensors.size()) r.bad("a tensor was expected: q, k, v or o");
    const Map m{static_cast<Map::Tensor>(t), r.number<int>(w[1]), w.size() > 2 ? r.number<int>(w[2]) : 1};
    if (m.rows < 1 || m.rows > kMostRows) r.bad("1 to 256 rows were expected");
    if (m.step < 1 || m.step > kMostStep || (m.step == 1 && w.size() > 2)) r.bad("a step of 2 to 1024 was expected");
    return m;
}

Operand read_operand(Reader& r) {
    Operand o;
    const auto w = r.words(r.after("operand"), 5);
    o.name = w[0];
    const auto type = dtype_from_short(w[1]);
    if (!type) r.bad("unknown type '" + std::string(w[1]) + "'");
    o.dtype = *type;
    o.rank = r.number<int>(w[2]);
    if (o.rank < 0 || o.rank > 4) r.bad("a rank of 0 to 4 was expected");
    if (w[3] != "bound" && w[3] != "given") r.bad("expected 'bound' or 'given'");
    o.bound = w[3] == "bound";
    o.value = r.number<double>(w[4]);
    for (int k = 0; k < o.rank; ++k) {
        const auto text = r.after("axis");
        constexpr std::string_view exact = "exact ";
        if (!text.starts_with(exact)) r.bad("expected 'exact'");
        o.least.push_back(r.code(text.substr(exact.size())));
    }
    if (r.at("aligned")) {
        o.alignment = r.number<int>(r.after("aligned"));
        if (o.alignment <= 0) r.bad("a positive number of bytes was expected");
    }
    return o;
}

Condition read_condition(Reader& r) {
    Condition c{};
    const auto kind = r.after("condition");
    std::size_t k = 0;
    while (k < kConditions.size() && kind != kConditions[k]) ++k;
    if (k == kConditions.size()) r.bad("unknown condition");
    c.kind = static_cast<Condition::Kind>(k);
    c.text = unescaped(r.after("text"));
    c.left = r.code(r.after("left"));
    c.right = r.code(r.after("right"));
    return c;
}

Plan read_plan(Reader& r) {
    Plan p;
    if (r.line() != kVersion) r.bad("expected '" + std::string(kVersion) + "'");
    p.abi = r.number<int>(r.after("abi"));
    const auto lse = r.after("lse");
    if (lse != "0" && lse != "1") r.bad("expected 'lse 0' or 'lse 1'");
    p.writes_lse = lse == "1";
    p.workspace = r.code(r.after("workspace"));
    if (r.at("ticket")) {
        p.ticket = true;
        if (!r.after("ticket").empty()) r.bad("expected 'ticket' alone");
    }
    while (r.at("map")) {
        p.maps.push_back(read_map(r));
        for (std::size_t k = 0; k + 1 < p.maps.size(); ++k)
            if (!beside(p.maps[k], p.maps.back())) r.bad("a second map of one tensor");
    }
    while (r.at("entry")) p.entries.push_back(read_entry(r));
    while (r.at("operand")) p.operands.push_back(read_operand(r));
    while (r.at("condition")) p.conditions.push_back(read_condition(r));
    if (r.line() != "end" || !r.done()) r.bad("expected 'end' and nothing after it");
    if (p.entries.empty() || p.entries.size() > kMaxEntries) r.bad("one to eight entries were expected");
    return p;
}

} // namespace

bool beside(const Map& a, const Map& b) {
    if (a.tensor != b.tensor) return true;
    const bool keys = a.tensor == Map::Tensor::K || a.tensor == Map::Tensor::V;
    return keys && a.rows == b.rows && (a.step == 1) != (b.step == 1);
}

const char* name(Map::Tensor t) {
    return t <= Map::Tensor::O ? kTensors[static_cast<std::size_t>(t)] : "?";
}

std::string Plan::text() const {
    std::string out(kVersion);
    out +=
        "\nabi " + std::to_string(abi) + "\nlse " + (writes_lse ? "1" : "0") + "\nworkspace " + workspace.text() + "\n";
    if (ticket) out += "ticket\n";
    for (const auto& m : maps)
        out += std::string("map ") + name(m.tensor) + " " + std::to_string(m.rows) +
               (m.step == 1 ? "" : " " + std::to_string(m.step)) + "\n";
    for (const auto& e : entries) {
        out += "entry " + e.name + " block";
        for (const int b : e.block) out += " " + std::to_string(b);
        out += " shared " + std::to_string(e.shared_bytes) + "\n";
        for (const auto& g : e.grid) out += "grid " + g.text() + "\n";
    }
    for (const auto& o : operands) {
        out += "operand " + o.name + " " + short_name(o.dtype) + " " + std::to_string(o.rank) +
               (o.bound ? " bound " : " given ") + decimal(o.value) + "\n";
        for (const auto& least : o.least) out += "axis exact " + least.text() + "\n";
        if (o.alignment != 0) out += "aligned " + std::to_string(o.alignment) + "\n";
    }
    for (const auto& c : conditions)
        out += std::string("condition ") + kConditions[static_cast<std::size_t>(c.kind)] + "\ntext " + escaped(c.text) +
               "\nleft " + c.left.text() + "\nright " + c.right.text() + "\n";
    return out + "end\n";
}

Result<Plan> Plan::parse(const std::string& text) {
    try {
        Reader reader(text);
        return read_plan(reader);
    } catch (const Failure& f) {
        return f.error;
    }
}

} // namespace cubridge::ir::launch
