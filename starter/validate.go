package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/spec"
)

// problemUnknownTool is a tool that the catalogue does not have.
const problemUnknownTool spec.ProblemCode = "UNKNOWN_TOOL"

func (a *app) validateCommand() *cobra.Command {
	var catalog string
	var offline bool
	cmd := &cobra.Command{
		Use:   "validate PATH…",
		Short: "Check documents and report every problem at once",
		Long: `Check agent documents (files, or folders with all that is in them). The running worker says which tools there are; a
catalogue from "catalog export" does so without one; --offline checks no tool names. The exit code is 1 when any problem is
an error.`,
		Example: `  jig validate my-agent.md
  jig validate bundles/ --offline --output json
  jig validate agents/ --catalog catalog.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if offline && catalog != "" {
				return usagef("--offline and --catalog exclude each other")
			}
			tools, err := a.toolNames(cmd.Context(), catalog, offline)
			if err != nil {
				return err
			}
			problems, err := checkPaths(args, tools)
			if err != nil {
				return err
			}
			return a.printProblems(problems, offline)
		},
	}
	cmd.Flags().StringVar(&catalog, "catalog", "", "catalogue from `catalog export`, in place of asking the worker")
	cmd.Flags().BoolVar(&offline, "offline", false, "check no tool names")
	return cmd
}

// toolNames finds the names of the tools that there are; nil when they are not to be checked.
func (a *app) toolNames(ctx context.Context, file string, offline bool) ([]string, error) {
	if offline {
		return nil, nil
	}
	var c client.Catalog
	if file != "" {
		content, err := a.readFile(file)
		if err != nil {
			return nil, usage(err)
		}
		if err := json.Unmarshal(content, &c); err != nil {
			return nil, usage(fmt.Errorf("%s is not a catalogue: %w", file, err))
		}
	} else if err := a.with(ctx, func(e engine) (err error) { c, err = e.Catalog(ctx, a.flags.tenant); return err }); err != nil {
		a.say("the worker could not be asked which tools there are: give --catalog FILE, or --offline to check no tool names")
		return nil, err
	}
	names := make([]string, 0, len(c.Tools))
	for _, t := range c.Tools {
		names = append(names, t.Name)
	}
	return names, nil
}

// checkPaths loads every document and checks the tools that it names (unless tools is nil).
func checkPaths(paths, tools []string) (spec.Problems, error) {
	problems := spec.Problems{}
	for _, p := range paths {
		docs, found, err := load(p)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
		if tools == nil {
			continue
		}
		for _, doc := range docs {
			problems = append(problems, unknownTools(doc, tools)...)
		}
	}
	problems.Sort()
	return problems, nil
}

// load reads a file or a folder of documents, under the name that the user gave.
func load(name string) ([]spec.Document, spec.Problems, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, usage(err)
	}
	if !info.IsDir() {
		body, err := os.ReadFile(name) //nolint:gosec // the user names it
		if err != nil {
			return nil, nil, usage(err)
		}
		doc, problems := spec.Load(name, body)
		return []spec.Document{doc}, problems, nil
	}
	docs, problems := spec.LoadFS(os.DirFS(name), ".")
	for i := range docs {
		docs[i].Path = path.Join(filepath.ToSlash(name), docs[i].Path)
	}
	for i := range problems {
		problems[i].Document = path.Join(filepath.ToSlash(name), problems[i].Document)
	}
	return docs, problems, nil
}

// unknownTools finds the tools of an agent's whitelist that there are none of.
func unknownTools(doc spec.Document, tools []string) spec.Problems {
	if doc.Agent == nil {
		return nil
	}
	var problems spec.Problems
	for i, name := range doc.Agent.Tools {
		if known(name, tools) {
			continue
		}
		line, column := position(doc.Body, name)
		problems = append(problems, spec.Problem{
			Document: doc.Path, Path: fmt.Sprintf("tools[%d]", i), Line: line, Column: column, Code: problemUnknownTool,
			Severity: spec.SeverityError, Message: fmt.Sprintf("there is no tool %q", name), Hint: spec.Suggest(name, tools),
		})
	}
	return problems
}

func known(name string, tools []string) bool {
	if name == "*" || slices.Contains(tools, name) {
		return true
	}
	prefix, wild := strings.CutSuffix(name, "*")
	return wild && slices.ContainsFunc(tools, func(t string) bool { return strings.HasPrefix(t, prefix) })
}

// position finds where a name stands in a document, counting from 1; 0 when it is written in another way.
func position(body []byte, name string) (line, column int) {
	at := bytes.Index(body, []byte(name))
	if at < 0 {
		return 0, 0
	}
	before := body[:at]
	return 1 + bytes.Count(before, []byte("\n")), at - bytes.LastIndexByte(before, '\n')
}

func (a *app) printProblems(problems spec.Problems, offline bool) error {
	failed := len(problems.Errors()) > 0
	code := exitDone
	if failed {
		code = exitFailed
	}
	if offline {
		a.say("tool names were not checked (--offline)")
	}
	if a.json() {
		report := struct {
			OK       bool          `json:"ok"`
			Problems spec.Problems `json:"problems"`
		}{!failed, problems}
		if err := a.printJSON(report); err != nil {
			return err
		}
		return silent(code)
	}
	for _, p := range problems {
		if err := a.print("%s", p); err != nil {
			return err
		}
	}
	if !failed {
		a.say("%s", a.err.green("ok"))
	}
	return silent(code)
}
