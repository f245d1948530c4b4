package expr

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

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

// TaskEnv returns the environment of [TaskUse], which is cached.
func TaskEnv() (*Env, error) { return stepEnvs.get(TaskUse()) }

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
