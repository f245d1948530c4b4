// Package protocol names the workflows, signals, updates, queries and activities that programs use to talk to jig over Temporal, and
// defines their messages. The names and the JSON of the messages never change.
//
// A [Read] is the name of an activity that clients start directly, with the types of its request and its answer. Where an operation of the API is a
// plain read, the tags of the request also say where its members are in an HTTP request; see internal/api. A [Statement] is what a server says about
// who sends a message. Messages are decoded strictly: JSON that could be read in two ways is refused. Begin with names.go.
package protocol
