package jig

import "regexp"

// versionDigits is the number of hex digits of a version that people see.
const versionDigits = 16

var fullHash = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// ShortVersion shortens every SHA-256 hash in a text to its first 16 hex digits, as versions are shown to people. The text may be a
// version, a policy version (name@hash) or the subject of an audit row.
func ShortVersion(text string) string {
	return fullHash.ReplaceAllStringFunc(text, func(hash string) string { return hash[:versionDigits] })
}
