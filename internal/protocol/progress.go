package protocol

// Progress counts the tasks of an extraction, or the entities of an extraction of many.
type Progress struct {
	// Done counts tasks that have a value, including one that was kept; for entities, those whose
	// extraction ended as completed or partial.
	Done    int `json:"done"`
	Running int `json:"running"`
	// Failed also counts tasks, or entities, that were denied, expired or canceled.
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Total grows page by page when many entities are filled.
	Total int `json:"total"`
}
