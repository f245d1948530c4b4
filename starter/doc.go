// Package starter implements the command line: commands that start sessions and single calls, answer calls that wait for a person, and
// show what happened. They reach the engine through package client, never through the database. Command jig runs them, together with the
// commands that run jig's own processes.
package starter
