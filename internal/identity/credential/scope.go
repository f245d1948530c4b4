package credential

// The scopes of a credential. One without any of them can only show its own identity.
const (
	// ScopeRead allows reading everything that the tenant has.
	ScopeRead = "read"
	// ScopeRun allows starting, canceling and writing to sessions, and calling tools.
	ScopeRun = "run"
	// ScopeDecide allows deciding about calls that wait for approval. A key has it only if somebody asked for it.
	ScopeDecide = "decide"
	// ScopeAuthor allows registering, changing and removing documents and bundles, as far as approvals allow it. A key has it only if somebody
	// asked for it.
	ScopeAuthor = "author"
	// ScopeOperate allows operating the schedules of others. A key has it only if somebody asked for it.
	ScopeOperate = "operate"
	// ScopeManage allows creating and revoking API keys over HTTP, and reading credential events.
	ScopeManage = "manage"
)

// Scopes lists all scopes.
func Scopes() []string {
	return []string{ScopeRead, ScopeRun, ScopeDecide, ScopeAuthor, ScopeOperate, ScopeManage}
}

// DefaultScopes lists the scopes of a key that was created without naming any.
func DefaultScopes() []string { return []string{ScopeRead, ScopeRun} }
