package deps

// RiskOf exports riskOf for tests.
func RiskOf(spdx string) string { return riskOf(spdx) }
