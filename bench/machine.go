package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
)

// machine describes the machine, the software, the date and the command of the measurement.
func (b *bench) machine(ctx context.Context) string {
	command := strings.TrimSpace("go run ./bench " + strings.Join(b.args, " "))
	return fmt.Sprintf("%s, %d cores · %s · PostgreSQL %s · Temporal %s%s · %s\n\n`%s`, %d pairs; medians with (lowest–highest)\n\n",
		processor(), runtime.NumCPU(), runtime.Version(), b.postgresVersion(ctx), b.temporalVersion(ctx), b.flushDelay(ctx),
		time.Now().UTC().Format(time.DateOnly), command, b.pairs)
}

// processor returns the model of the CPU, or its architecture if the system does not report the model.
func processor() string {
	content, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(content)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// machineTime returns the CPU time that all processes on this machine have used since it started.
func machineTime() (time.Duration, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("CPU time of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	fields := strings.Fields(line)
	const user, nice, system, interrupts, soft = 1, 2, 3, 6, 7 // see proc(5)
	if len(fields) <= soft || fields[0] != "cpu" {
		return 0, errors.New("CPU time of the machine: unexpected file format")
	}
	var ticks float64
	for _, at := range []int{user, nice, system, interrupts, soft} {
		n, err := strconv.ParseFloat(fields[at], 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time of the machine: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks / ticksPerSecond * float64(time.Second)), nil
}

func (b *bench) postgresVersion(ctx context.Context) string {
	conn, err := pgx.Connect(ctx, b.database)
	if err != nil {
		return "(unknown)"
	}
	version := conn.PgConn().ParameterStatus("server_version")
	_ = conn.Close(ctx) // nothing can be lost
	number, _, _ := strings.Cut(version, " ")
	return number
}

func (b *bench) temporalVersion(ctx context.Context) string {
	info, err := b.temporal.WorkflowService().GetClusterInfo(ctx, &workflowservicepb.GetClusterInfoRequest{})
	if err != nil {
		return "(unknown)"
	}
	return info.GetServerVersion()
}
