package deps

// RiskOf is riskOf, for tests.
func RiskOf(spdx string) string { return riskOf(spdx) }
