// Package chat holds the conversation with a model: messages, turns, usage, and the requests that model providers answer.
package chat
