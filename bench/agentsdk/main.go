// Command agentsdk runs the jobs of jig's benchmark P18 on agent-sdk-go. It is a module of its own, because agent-sdk-go needs other versions of
// some modules. ../rival.go describes what it reads and writes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agentsdk:", err)
		os.Exit(1)
	}
}

// command is a line of the input.
type command struct {
	Do       string  `json:"do"`
	Passes   int     `json:"passes"`
	Calls    int     `json:"calls"`
	Sessions int     `json:"sessions"`
	AtOnce   int     `json:"at_once"`
	After    float64 `json:"after_ms"`
}

// answer is a line of the output.
type answer struct {
	Name    string    `json:"name,omitempty"`
	Times   []float64 `json:"ms,omitempty"`
	Elapsed float64   `json:"elapsed_ms,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// run answers the commands of in until in ends.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	flags := flag.NewFlagSet("agentsdk", flag.ContinueOnError)
	address := flags.String("temporal", "", "address of Temporal")
	namespace := flags.String("namespace", "default", "namespace")
	queue := flags.String("queue", "bench-rival", "prefix of the task queues")
	model := flags.String("model", "", "URL of the model")
	atOnce := flags.Int("at-once", 20, "sessions at once")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the command line: %w", err)
	}
	temporal, err := client.Dial(client.Options{
		HostPort: *address, Namespace: *namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return fmt.Errorf("connect to Temporal: %w", err)
	}
	defer temporal.Close()
	p, err := newProgram(temporal, *queue, *model, *atOnce)
	if err != nil {
		return err
	}
	defer p.close()
	return p.serve(ctx, json.NewDecoder(in), json.NewEncoder(out))
}

// serve says what it runs and answers commands until the input ends.
func (p *program) serve(ctx context.Context, in *json.Decoder, out *json.Encoder) error {
	a := answer{Name: name()}
	for {
		if err := out.Encode(a); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
		var c command
		err := in.Decode(&c)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a command: %w", err)
		}
		if a, err = p.do(ctx, c); err != nil {
			a = answer{Error: err.Error()}
		}
	}
}

// name returns agent-sdk-go with its version.
func name() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/agenticenv/agent-sdk-go" {
				return "agent-sdk-go " + m.Version
			}
		}
	}
	return "agent-sdk-go"
}
