package activities

// What the tests of this package look at directly.
var (
	Next         = next
	Fit          = fit
	WithDefaults = withDefaults
	VerdictOn    = verdictOn
	Signature    = signature
	Digest       = digest
	Listed       = listed
	StrictJSON   = strictJSON
	CutDown      = cutDown
	Cut          = cut
	FitView      = fitView
	Patched      = patched
)
