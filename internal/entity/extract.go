package entity

import "encoding/json"

// ExtractMode says how an extraction treats the outcomes of an earlier extraction's tasks; package extraction has the modes.
type ExtractMode string

// ExtractInput is the input of entities.extract.
type ExtractInput struct {
	ID     string          `json:"id"               jsonschema:"the entity's id" minLength:"1"`
	Fields []string        `json:"fields,omitempty" jsonschema:"the only fields to fill, with what they depend on; all when it is left out"`
	Input  json.RawMessage `json:"input,omitempty" jsonschema:"what the tasks read as input"`
	Mode   ExtractMode     `json:"mode,omitempty"   jsonschema:"run: every task; retry: those without a value; refresh: those whose sources or inputs changed" enum:"run,retry,refresh" default:"run"`
}

// ExtractAllInput is the input of entities.extractAll.
type ExtractAllInput struct {
	Type        string          `json:"type"                   jsonschema:"the entity type's name" minLength:"1"`
	Where       []FilterClause  `json:"where,omitempty"        jsonschema:"which of them, as for entities.filter; all when it is left out" maxItems:"50"`
	Match       FilterMatch     `json:"match,omitempty"        jsonschema:"whether all of where must hold, or any" enum:"all,any" default:"all"`
	Workspace   string          `json:"workspace,omitempty"    jsonschema:"only entities of this workspace"`
	Mode        ExtractMode     `json:"mode,omitempty"         jsonschema:"as for entities.extract" enum:"run,retry,refresh" default:"run"`
	Fields      []string        `json:"fields,omitempty"       jsonschema:"the only fields to fill, with what they depend on; all when it is left out"`
	Input       json.RawMessage `json:"input,omitempty"        jsonschema:"what the tasks of every entity read as input, at most 16 KiB"`
	MaxParallel int             `json:"max_parallel,omitempty" jsonschema:"how many entities are filled at once" default:"20" minimum:"1" maximum:"100"`
	Limit       int             `json:"limit,omitempty"        jsonschema:"stop after this many entities; no limit when it is left out" minimum:"1"`
}

// Extraction is the input for starting an extraction of an entity.
type Extraction struct {
	Entity Entity
	Type   Type
	Fields []string
	Mode   string
	// Task is the only task to run, with those that it depends on. If it is empty, Fields and Mode say what to run.
	Task  string
	Input json.RawMessage
	// Tasks says how tasks ended in earlier extractions, by id.
	Tasks map[string]json.RawMessage
}
