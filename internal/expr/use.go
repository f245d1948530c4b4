package expr

import (
	"cmp"
	"fmt"
	"slices"
	_ "time/tzdata" // expressions name time zones, e.g. now.getHours('Europe/Berlin'), and containers lack a time zone database

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/jig-run/jig/internal/cache"
)

// Type is the type that an expression may assume for a variable.
type Type int

// The types. Values of type Any are checked when the expression runs, others when it is compiled.
const (
	Any Type = iota
	Bool
	Int
	String
	// List has values of any type.
	List
	// Map has string keys and values of any type.
	Map
	// Timestamp is a point in time, such as a [time.Time] among the variables.
	Timestamp
)

// Variable is a name that expressions of a use may read.
type Variable struct {
	Name string
	Type Type
}

// Limits are the limits of the expressions of a use. Zero means the default.
type Limits struct {
	// Source is the longest source, in bytes. The default is 4 KiB.
	Source int
	// Cost is the maximum number of steps of the loops of one evaluation: elements times nodes of the body, charged before a loop begins.
	// The default is 1,000,000.
	Cost int64
	// Work is the maximum number of bytes that one evaluation may build, compare or scan. The default is 12 MiB.
	Work int64
	// Result is the largest result, in bytes of JSON. The default is 1 MiB.
	Result int
}

func (l Limits) withDefaults() Limits {
	if l.Source == 0 {
		l.Source = 4 << 10
	}
	if l.Cost == 0 {
		l.Cost = 1_000_000
	}
	if l.Work == 0 {
		l.Work = 12 << 20
	}
	if l.Result == 0 {
		l.Result = 1 << 20
	}
	return l
}

// Use declares the variables that the expressions in one place of a document may read, and their limits.
type Use struct {
	// Name identifies the environment in the cache; see [Use.Env]. It is not shown to people.
	Name      string
	Variables []Variable
	Limits    Limits
}

// ConcurrencyKeyUse returns the use for a tool's concurrency key, which reads the call's `input`.
func ConcurrencyKeyUse() Use {
	return Use{Name: "concurrency_key", Variables: []Variable{{Name: "input"}}}
}

// UndoInputUse returns the use for the input with which a tool's effect is undone. It reads the `input` of the call and the data of its
// `result`.
func UndoInputUse() Use {
	return Use{Name: "undo_input", Variables: []Variable{{Name: "input"}, {Name: "result"}}}
}

// ScriptUse returns the use for the rules of a script model. For the contents of its variables see package model. A source may have 16 KiB,
// a result 4 MiB, and an evaluation may cost 10,000,000 steps and work on 20 MiB.
func ScriptUse() Use {
	return Use{
		Name: "script",
		Variables: []Variable{
			{Name: "input"},
			{Name: "session", Type: String},
			{Name: "task", Type: String},
			{Name: "pass", Type: Int},
			{Name: "calls", Type: List},
			{Name: "last", Type: List},
			{Name: "messages", Type: List},
			{Name: "vars", Type: Map},
			{Name: "item"},
			{Name: "index", Type: Int},
		},
		Limits: Limits{Source: 16 << 10, Cost: 10_000_000, Work: 20 << 20, Result: 4 << 20},
	}
}

// StepUse returns the use for the expressions of a composition's steps. They read the composition's `input`, the results of its `steps` by
// id, its `vars`, `item` and `index` in a loop, `error` where an error is handled, `event` where an event is awaited, and `session`,
// `tenant`, `principal` and `now`. The extra variables are further names, such as the name that a catch gives to its error; an extra
// variable replaces a variable of the same name. The limits are the defaults of [Limits].
func StepUse(extra ...Variable) Use {
	use := Use{
		Name: "step",
		Variables: []Variable{
			{Name: "input"},
			{Name: "steps", Type: Map},
			{Name: "vars", Type: Map},
			{Name: "item"},
			{Name: "index", Type: Int},
			{Name: "error"},
			{Name: "session", Type: Map},
			{Name: "tenant", Type: String},
			{Name: "principal", Type: Map},
			{Name: "now", Type: Timestamp},
			{Name: "event"},
		},
		Limits: Limits{}.withDefaults(),
	}
	for _, v := range slices.SortedFunc(slices.Values(extra), func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) }) {
		at := slices.IndexFunc(use.Variables, func(have Variable) bool { return have.Name == v.Name })
		switch {
		case at < 0:
			use.Variables = append(use.Variables, v)
		case use.Variables[at].Type == v.Type:
			continue
		default:
			use.Variables[at] = v
		}
		use.Name += fmt.Sprintf(" %s/%d", v.Name, v.Type)
	}
	return use
}

// maxEnvironments limits how many environments are kept, because documents choose the extra names of steps.
const maxEnvironments = 100

var environments = cache.New[string, *Env](0, maxEnvironments) // environments are immutable

// Env returns the environment of the use. Environments are cached by the names of their uses, because making one takes a millisecond.
func (u Use) Env() (*Env, error) {
	return environments.Get(u.Name, func(*Env, bool) (*Env, error) { return NewEnv(u) })
}

// PolicyUse returns the use for the rules of a policy and the conditions of standing approvals. They read the `tool` and the requested
// `call`, its `input` (short for call.input), the `agent`, the `principal`, the `tenant` and the `session` that make the call, and `now`.
// Every rule of a policy is evaluated for every call, so an evaluation may cost at most 100,000 steps, work on 4 MiB and return 64 KiB. A
// source may have 4 KiB.
func PolicyUse() Use {
	return Use{
		Name: "policy",
		Variables: []Variable{
			{Name: "tool", Type: Map},
			{Name: "call", Type: Map},
			{Name: "input", Type: Map},
			{Name: "agent", Type: Map},
			{Name: "principal", Type: Map},
			{Name: "tenant", Type: String},
			{Name: "session", Type: Map},
			{Name: "now", Type: Timestamp},
		},
		Limits: Limits{Source: 4 << 10, Cost: 100_000, Work: 4 << 20, Result: 64 << 10},
	}
}

// BudgetUse returns the use for the conditions of budgets. They read the `model` or the `tool` that is called, the `agent`, the `principal`,
// the `tenant` and the `session` that make the call, and `now`. The rules of a limit that is exhausted also read the `limit`. The bounds are
// those of policies.
func BudgetUse() Use {
	return Use{
		Name: "budget",
		Variables: []Variable{
			{Name: "model", Type: String},
			{Name: "tool", Type: String},
			{Name: "agent", Type: Map},
			{Name: "principal", Type: Map},
			{Name: "tenant", Type: String},
			{Name: "session", Type: Map},
			{Name: "limit", Type: Map},
			{Name: "now", Type: Timestamp},
		},
		Limits: PolicyUse().Limits,
	}
}

// RateLimitUse returns the use for the conditions and keys of rate limits. They read the `tool` that is called, its `input`, and the `agent`, the
// `principal`, the `tenant` and the `session` that make the call. The bounds are those of policies.
func RateLimitUse() Use {
	return Use{
		Name: "rate limit",
		Variables: []Variable{
			{Name: "tool", Type: String},
			{Name: "input", Type: Map},
			{Name: "agent", Type: Map},
			{Name: "principal", Type: Map},
			{Name: "tenant", Type: String},
			{Name: "session", Type: Map},
		},
		Limits: PolicyUse().Limits,
	}
}

// The variables of tasks whose members [Reads] lists by name.
const (
	tasksName   = "tasks"
	entityName  = "entity"
	contentName = "content"
)

// TaskUse returns the use for the expressions of an entity type's tasks. They read the `entity` ({id, type, title, content}, with the
// content as far as it is known), the values of finished `tasks` by id, the `input` that the extraction was started with, the `tenant` and
// `now`. The expressions for a task's value and sources also read `result`, which its call returned. The limits are the defaults of
// [Limits].
func TaskUse() Use {
	return Use{
		Name: "task",
		Variables: []Variable{
			{Name: entityName, Type: Map},
			{Name: tasksName, Type: Map},
			{Name: "input"},
			{Name: "tenant", Type: String},
			{Name: "now", Type: Timestamp},
			{Name: "result"},
		},
		Limits: Limits{}.withDefaults(),
	}
}

// entityContent reports whether an expression is the entity's content: entity.content, entity["content"], entity.?content.
func (r *reader) entityContent(e ast.Expr) bool {
	switch e.Kind() { //nolint:exhaustive // only these kinds read a member
	case ast.SelectKind:
		name, ok := r.variable(e.AsSelect().Operand())
		return ok && name == entityName && e.AsSelect().FieldName() == contentName
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			name, ok := r.variable(call.Args()[0])
			key, literal := text(call.Args()[1])
			return ok && literal && name == entityName && key == contentName
		}
	}
	return false
}

// entityMember records that a member of the entity is read. If that is the content, any field of it may be read.
func (r *reader) entityMember(key string) {
	r.names[entityName] = true
	r.content.all = r.content.all || key == contentName
}

// entitiesName is the variable of thin tools with the entities that the tool starts from.
const entitiesName = "entities"

// ThinUse returns the use for the expressions of a thin tool. They read the call's `input`, the `entities` that the tool starts from by
// name ({id, type, title, content, connected}; null for an optional one that was not given), the `tenant`, the calling `principal` ({id,
// groups, permissions}), and `now`. A person waits for the result of a thin tool, so an evaluation may cost at most 100,000 steps, work on
// 4 MiB and return 256 KiB. A source may have 4 KiB.
func ThinUse() Use {
	return Use{
		Name: "thin",
		Variables: []Variable{
			{Name: "input"},
			{Name: entitiesName, Type: Map},
			{Name: "tenant", Type: String},
			{Name: "principal", Type: Map},
			{Name: "now", Type: Timestamp},
		},
		Limits: Limits{Source: 4 << 10, Cost: 100_000, Work: 4 << 20, Result: 256 << 10},
	}
}

// ThinURLUse returns the use for the link that a thin tool returns. In addition to what [ThinUse] offers, it reads the `entity` that the
// tool has created ({id}) and the `session` of its extraction ({id}, empty if none was started). A result may have 4 KiB.
func ThinURLUse() Use {
	use := ThinUse()
	use.Name = "thin url"
	use.Variables = append(use.Variables, Variable{Name: entityName, Type: Map}, Variable{Name: "session", Type: Map})
	use.Limits.Result = 4 << 10
	return use
}

// PreviewUse returns the use for the preview in a document. Its expressions read the call's `input`, the `tenant`, the calling `principal`
// ({id, groups, permissions}), and `read`, which holds the output of the preview's call as data. They do not read the time, because two
// previews of the same state must be equal. The limits are those of [ThinUse].
func PreviewUse() Use {
	return Use{
		Name: "preview",
		Variables: []Variable{
			{Name: "input"},
			{Name: "read", Type: Map},
			{Name: "tenant", Type: String},
			{Name: "principal", Type: Map},
		},
		Limits: ThinUse().Limits,
	}
}
