// Follows the text of a specification statement by statement, in whichever domain it is given. No Python runs; time is
// bounded by a count of steps, depth by the parser's limits and a limit on calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/spec/domain.h"
#include <deque>
#include <functional>

namespace cubridge::ir::spec {

class Interpreter {
public:
    /// `module` and `domain` outlive the interpreter. Throws Failure.
    Interpreter(const syntax::Node& module, Domain& domain);

    /// Runs another module in the same scope.
    void run(const syntax::Node& module);
    /// Runs the module's own statements: imports, constants, functions. Constants are evaluated as written.
    void run_module();
    /// Called with the name and value of a module global that is not a function when a function reads it; what it
    /// returns is what the function sees.
    std::function<Value(const std::string&, const Value&)> on_global;

    /// A module-level name, or null.
    const Value* global(const std::string& name) const;
    void set_global(const std::string& name, Value v) { module_scope_.names[name] = std::move(v); }

    Value call(const Value& callee, Values positional, std::vector<std::pair<std::string, Value>> keywords = {});

    Domain& domain() { return domain_; }
    Span span() const { return span_; } ///< where the run is

    // Python's operators on any values; used by the library too.
    Value binary(const std::string& op, const Value& a, const Value& b);
    Value elementwise(Op op, Values x); ///< numbers stay numbers, tensors make tensors
    bool truth(const Value& v);
    Value subscript(const Value& object, const Value& index);
    std::vector<Value> iterate(const Value& v);
    TensorRef tensor(const Value& v); ///< a tensor as it is, numbers wrapped, else a Failure
    Value evaluate(const syntax::Node& e, Scope& scope);
    /// Counts what takes time, elements of lists included; a Failure of kind "limit" when there was too much.
    void step(std::size_t n = 1);
    /// A list of `n` elements is made: counted, and bounded.
    void list_size(std::size_t n);
    /// `list` gets `v`: counted, and refused where the list would hold itself.
    void put_in(const Values& list, const Value& v);
    /// Runs `f` inside one more list; a Failure of kind "limit" where lists are nested too deep to be walked.
    template <class F> auto nested(F f) {
        struct Level {
            int& depth;
            ~Level() { --depth; }
        } level{++nesting_};
        if (nesting_ > 32) fail("limit", "lists are nested more than 32 deep", span_);
        return f();
    }

private:
    /// One more statement or expression inside another; bounded, so that a thread with a small stack can parse.
    class Deeper {
    public:
        explicit Deeper(Interpreter& in) : in_(in) {
            if (++in_.depth_ > kMaxDepth) {
                --in_.depth_;
                fail("limit", "calls and expressions are nested too deep", in_.span_,
                     "write the recursion as whole-tensor operations");
            }
        }
        Deeper(const Deeper&) = delete;
        Deeper& operator=(const Deeper&) = delete;
        ~Deeper() { --in_.depth_; }

    private:
        Interpreter& in_;
    };
    static constexpr int kMaxDepth = 600;
    enum class Flow { Next, Return, Break, Continue };
    Flow block(const std::vector<syntax::NodePtr>& body, Scope& scope);
    Flow statement(const syntax::Node& s, Scope& scope);
    void import(const syntax::Node& s, Scope& scope);
    void assign(const syntax::Node& target, Value v, Scope& scope);
    void assign_item(const syntax::Node& target, const Value& v, Scope& scope);
    Value lookup(const syntax::Node& name, Scope& scope);
    Value attribute(const syntax::Node& e, Scope& scope);
    Value call_node(const syntax::Node& e, Scope& scope);
    Value compare(const std::string& op, const Value& a, const Value& b);
    Value unary(const std::string& op, const Value& a);
    Value comprehension(const syntax::Node& e, Scope& scope);
    Value function(const syntax::Node& def, Scope& scope);
    Value index_tensor(const TensorRef& t, const Value& index);
    std::vector<std::pair<std::string, Value>> keywords_of(const syntax::Node& call, Values& positional, Scope& scope);
    Scope& new_scope(Scope* parent);
    TensorRef stored_in(const TensorRef& t, const TensorRef& to);
    TensorRef succeed(const TensorRef& t, TensorRef next);
    void share(const TensorRef& t, const Value& v);
    const Value& fresh(const Value& v, const std::string& name) const;

    const syntax::Node& module_;
    Domain& domain_;
    Scope builtin_scope_, module_scope_;
    std::deque<Scope> scopes_;
    Value returned_;
    Span span_;
    std::size_t steps_ = 0;
    int calls_ = 0, nesting_ = 0, depth_ = 0;
};

} // namespace cubridge::ir::spec
