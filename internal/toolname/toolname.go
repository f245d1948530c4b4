// Package toolname holds the names of built-in tools that the engine, the language of documents or the command line call themselves, or that
// hints mention. It must not know how the tools work.
package toolname

import (
	"slices"
	"strings"
)

// The tools behind prompts, agents and tasks.
const (
	// PromptDirect takes {model?, system?, prompt, schema?, max_tokens?} and returns {text} or, with a schema, {output}, together with
	// {model, usage}.
	PromptDirect = "prompt.direct"
	// PromptSkill takes {skill, …} in addition and returns the same.
	PromptSkill = "prompt.skill"
	// PersonAsk takes {question, schema?, options?, expires?} and returns {answer, by}.
	PersonAsk = "person.ask"
	// AgentRun takes {agent, task?, input?, model?} and returns {session_id, answer}.
	AgentRun = "agent.run"
	// TasksRun takes {entity, task, values?} and returns {entity_id, task, status, value}.
	TasksRun = "tasks.run"
	// TasksStart takes the same as [TasksRun], does not wait, and returns {entity_id, task, session_id}.
	TasksStart = "tasks.start"
)

// The tools of entities.
const (
	// EntitiesFilter takes {type, where?, match?, workspace?, sort, limit, cursor?} and returns {entities: [{entity_id}], next?}.
	EntitiesFilter = "entities.filter"
	// EntitiesExtract takes {id, mode?, fields?, input?} and returns the result of an extraction.
	EntitiesExtract = "entities.extract"
	// EntitiesExtractAll takes {type, where?, match?, workspace?, mode?, fields?, input?, max_parallel?, limit?} and returns how many
	// extractions completed.
	EntitiesExtractAll = "entities.extractAll"
	// The HTTP interface reads and changes entities with these.
	EntitiesListTypes      = "entities.listTypes"
	EntitiesSearch         = "entities.search"
	EntitiesGet            = "entities.get"
	EntitiesCreate         = "entities.create"
	EntitiesUpdate         = "entities.update"
	EntitiesDelete         = "entities.delete"
	EntitiesListRelations  = "entities.listRelations"
	EntitiesCreateRelation = "entities.createRelation"
	EntitiesGetText        = "entities.getText"
	EntitiesPutText        = "entities.putText"
	TasksGetStatus         = "tasks.getStatus"
)

// The tools that set up a tenant.
const (
	BundleInstall  = "bundle.install"
	BundleRemove   = "bundle.remove"
	BundleList     = "bundle.list"
	CatalogPut     = "catalog.put"
	CatalogRestore = "catalog.restore"
	CatalogRemove  = "catalog.remove"
	GrantsCreate   = "grants.create"
	EnrolKey       = "tenants.enrol_key"
	SetDisabled    = "tenants.set_disabled"
)

// Authoring lists the tools that change what is registered.
func Authoring() []string {
	return []string{CatalogPut, CatalogRestore, CatalogRemove, BundleInstall, BundleRemove, SetDisabled}
}

// SessionsRetry takes {session_id, may_have_happened?} and returns the session that retries the other one.
const SessionsRetry = "sessions.retry"

// SessionsUndo takes {session_id, calls?} and undoes what the session has changed.
const SessionsUndo = "sessions.undo"

// Listed reports whether a list of names, "category.*" and "*" contains a tool.
func Listed(list []string, name string) bool {
	for _, entry := range list {
		if entry == "*" || entry == name {
			return true
		}
		if prefix, ok := strings.CutSuffix(entry, "*"); ok && strings.HasSuffix(prefix, ".") && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Registers reports whether a tool changes which documents are in force. Such a tool must work while a document cannot be used, because nobody
// could replace the document otherwise.
func Registers(name string) bool {
	return slices.Contains([]string{CatalogPut, CatalogRestore, CatalogRemove, BundleInstall, BundleRemove}, name)
}
