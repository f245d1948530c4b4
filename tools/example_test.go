package tools_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

type countInput struct {
	Text string `json:"text"           jsonschema:"the text whose words are counted" maxLength:"100000"`
	Unit string `json:"unit,omitempty" jsonschema:"what to count"                    enum:"words,lines" default:"words"`
}

type countOutput struct {
	Count int `json:"count" jsonschema:"how many there are"`
}

func (o countOutput) Summary() string { return fmt.Sprintf("counted %d", o.Count) }

func ExampleNew() {
	count := tools.New(jig.Tool{
		Name:        "text.count",
		Description: "Counts words or lines of a text. Use it for exact numbers; it does not read files.",
		Permission:  jig.PermissionRead,
		Risk:        jig.RiskSafe,
		Idempotent:  true,
	}, func(_ context.Context, _ jig.Invocation, in countInput) (countOutput, error) {
		if in.Unit == "lines" {
			return countOutput{Count: strings.Count(in.Text, "\n") + 1}, nil
		}
		return countOutput{Count: len(strings.Fields(in.Text))}, nil
	})
	registry, err := tools.NewRegistry(count)
	if err != nil {
		fmt.Println(err)
		return
	}
	result := registry.Run(context.Background(), "text.count", []byte(`{"text":"durable tools"}`), jig.Invocation{})
	fmt.Println(result.Summary, string(result.Data))
	result = registry.Run(context.Background(), "text.count", []byte(`{"txt":"durable tools"}`), jig.Invocation{})
	fmt.Println(result.Error)
	// Output:
	// counted 2 {"count":2}
	// INVALID_INPUT: text.count: /text is required and missing; /txt is not a known property, did you mean text? (/text); did you mean text?
}
