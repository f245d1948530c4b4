package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// A rival is a framework that another program runs, so that the modules here do not depend on it. The program is the framework's worker and
// client. It reads commands and writes answers, each a line of JSON:
//
//	PROGRAM -temporal ADDRESS -namespace NAMESPACE -queue PREFIX -model URL -at-once N
//	→ {"name":"agent-sdk-go v0.1.3"}
//	{"do":"sessions","passes":3,"calls":5,"sessions":40,"at_once":20}
//	→ {"ms":[412.5,…],"elapsed_ms":10231.7}
//	{"do":"approvals","sessions":10,"after_ms":50}
//	→ {"ms":[23.1,…]}
//	→ {"error":"…"}
//
// The program's first line says that its worker polls, on task queues whose names begin with PREFIX. For "sessions" it runs that many sessions,
// at most at_once at a time, whose user message is {"passes":3,"calls":5}; it reports each session's time from its start until the client has
// the answer, and the time for all. For "approvals" it runs sessions of one pass with one call, one after another, answers each request for
// approval after_ms after it was made, and reports the time from sending each answer until the tool's function is entered. The model is at URL
// and speaks OpenAI's Chat Completions. The program offers it one tool, which does nothing. The program ends when its input ends.
type rival struct {
	name    string
	in      io.WriteCloser
	answers *json.Decoder
	wait    func() error
}

type rivalCommand struct {
	Do       string  `json:"do"`
	Passes   int     `json:"passes,omitempty"`
	Calls    int     `json:"calls,omitempty"`
	Sessions int     `json:"sessions"`
	AtOnce   int     `json:"at_once,omitempty"`
	After    float64 `json:"after_ms,omitempty"`
}

type rivalAnswer struct {
	Name    string    `json:"name"`
	Times   []float64 `json:"ms"`
	Elapsed float64   `json:"elapsed_ms"`
	Error   string    `json:"error"`
}

// rivalQueue is the prefix of the rival's task queues.
const rivalQueue = "bench-rival"

// rivalPatience is how long the rival's program may take to start.
const rivalPatience = time.Minute

// startRival starts the rival's program. It ends with ctx at the latest.
func (b *bench) startRival(ctx context.Context, program string) (*rival, error) {
	cmd := exec.CommandContext(ctx, program, "-temporal", b.address, "-namespace", b.namespace, "-queue", rivalQueue, //nolint:gosec // the user names it
		"-model", b.model.URL+"/v1/", "-at-once", fmt.Sprint(b.size.loadAtOnce))
	cmd.Stderr = b.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	kill := time.AfterFunc(rivalPatience, func() { _ = cmd.Process.Kill() }) //nolint:errcheck // an error means that it has already ended
	r, err := newRival(in, out, cmd.Wait)
	if !kill.Stop() && err == nil {
		err = errors.New("it was killed")
	}
	if err != nil {
		return nil, fmt.Errorf("%s did not become ready within %s: %w", program, rivalPatience, err)
	}
	return r, nil
}

// newRival reads the rival's first line. wait waits for the end of the program.
func newRival(in io.WriteCloser, out io.Reader, wait func() error) (*rival, error) {
	r := &rival{in: in, answers: json.NewDecoder(bufio.NewReader(out)), wait: wait}
	first, err := r.answer()
	if err == nil && first.Name == "" {
		err = errors.New("its first line does not say its name")
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.name = first.Name
	return r, nil
}

func (r *rival) answer() (rivalAnswer, error) {
	var a rivalAnswer
	if err := r.answers.Decode(&a); err != nil {
		return a, fmt.Errorf("read the rival's answer: %w", err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// do sends a command, waits for the answer, and checks that it has a time for each session.
func (r *rival) do(c rivalCommand) (rivalAnswer, error) {
	if err := json.NewEncoder(r.in).Encode(c); err != nil {
		return rivalAnswer{}, fmt.Errorf("send a command to the rival: %w", err)
	}
	a, err := r.answer()
	if err == nil && len(a.Times) != c.Sessions {
		err = fmt.Errorf("%s reports %d times for %d sessions", r.name, len(a.Times), c.Sessions)
	}
	return a, err
}

// close tells the program to end and waits until it has.
func (r *rival) close() error {
	return errors.Join(r.in.Close(), r.wait())
}

func (r *rival) sessions(_ context.Context, p plan, n, atOnce int) (times []float64, elapsed time.Duration, err error) {
	a, err := r.do(rivalCommand{Do: "sessions", Passes: p.Passes, Calls: p.Calls, Sessions: n, AtOnce: atOnce})
	return a.Times, time.Duration(a.Elapsed * float64(time.Millisecond)), err
}

func (r *rival) approvals(_ context.Context, n int) ([]float64, error) {
	a, err := r.do(rivalCommand{Do: "approvals", Sessions: n, After: milliseconds(thinkingTime)})
	return a.Times, err
}
