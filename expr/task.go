package expr

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// The variables of tasks whose members Reads tells apart.
const (
	tasksName   = "tasks"
	entityName  = "entity"
	contentName = "content"
)

// TaskUse is for the expressions of an entity type's tasks. They read the `entity` ({id, type, title, content}: the content as
// far as it is known), the values of finished `tasks` by id, the `input` that the extraction was started with, the `tenant` and
// `now`; where a task's value and sources are worked out also `result`, which the call gave back. The limits are the defaults
// of Limits.
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

// TaskEnv is the environment of TaskUse. It is made once.
func TaskEnv() (*Env, error) { return stepEnvs.get(TaskUse()) }

// entityContent reports whether an expression is the content of the entity: entity.content, entity["content"], entity.?content.
func (r *reader) entityContent(e ast.Expr) bool {
	switch e.Kind() { //nolint:exhaustive // how a member is read
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

// entityMember notes that a member of the entity is read, which may be its content as a whole.
func (r *reader) entityMember(key string) {
	r.names[entityName] = true
	r.content.all = r.content.all || key == contentName
}
