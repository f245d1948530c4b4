package store

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed queries/*.sql
var queryFiles embed.FS

var (
	queryHead    = regexp.MustCompile(`(?m)^-- (name|fragment): (\w+)\n`)
	fragmentMark = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// queries maps the names of the statements in queries/*.sql to their text.
type queries map[string]string

// plannedAnew marks, as a comment line of its own, a statement that PostgreSQL plans for the values of each execution. Statements with optional
// filters need that: which index helps depends on the filters that are given. All other statements have one generic plan, see [tune].
const plannedAnew = "-- plan: custom\n"

// loadQueries reads every embedded file. A statement begins with a line "-- name: TheName". "{{the_name}}" in a statement is replaced by
// the fragment that begins with the line "-- fragment: the_name".
func loadQueries() (queries, error) {
	entries, err := queryFiles.ReadDir("queries")
	if err != nil {
		return nil, fmt.Errorf("reading the embedded queries: %w", err)
	}
	list, fragments := queries{}, queries{}
	for _, entry := range entries {
		text, err := queryFiles.ReadFile("queries/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the embedded queries: %w", err)
		}
		heads := queryHead.FindAllStringSubmatchIndex(string(text), -1)
		for i, h := range heads {
			end := len(text)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			into := list
			if string(text[h[2]:h[3]]) == "fragment" {
				into = fragments
			}
			name := string(text[h[4]:h[5]])
			if _, twice := into[name]; twice {
				return nil, fmt.Errorf("query %s is defined twice", name)
			}
			into[name] = strings.TrimSpace(string(text[h[1]:end]))
		}
	}
	for name, text := range list {
		list[name] = fragmentMark.ReplaceAllStringFunc(text, func(mark string) string {
			return fragments[fragmentMark.FindStringSubmatch(mark)[1]]
		})
	}
	return list, nil
}
