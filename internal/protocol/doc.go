// Package protocol names the workflows, signals, updates, queries and activities that programs use to talk to jig over Temporal, and
// defines their messages. The names and the JSON of the messages never change.
package protocol
