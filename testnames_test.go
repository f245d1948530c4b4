package jig_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tests say what is true of a subject: TestSubject_Behavior.
func TestTests_AreNamedForSubjectAndBehavior(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^Test[A-Z][A-Za-z0-9]*(_[A-Z][A-Za-z0-9]*)+$`)
	for folder, names := range testsByFolder(t) {
		if slices.Contains(olderNames(), folder) {
			continue
		}
		for _, name := range names {
			require.Regexp(t, form, name, folder)
		}
	}
}

// olderNames lists the folders whose tests have names without a behavior. It must only become shorter.
func olderNames() []string {
	return []string{
		"internal/httpapi",
		"internal/identity",
		"internal/identity/openid",
		"internal/identity/token",
	}
}

// testsByFolder returns the names of all tests by their folders.
func testsByFolder(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, decl := range s.syntax.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests[s.folder] = append(tests[s.folder], f.Name.Name)
			}
		}
	}
	return tests
}
