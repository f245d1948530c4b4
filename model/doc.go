// Package model asks language models for the next turn of a session. It supports Anthropic's Messages API, every server that speaks
// OpenAI's Chat Completions (OpenAI itself, Ollama, vLLM, gateways), and script, a deterministic planner for tests and for automations that
// need no model.
//
// A provider converts the neutral transcript of jig.ModelRequest into its own wire format and the response into a jig.Turn. It asks once:
// retries, after the wait that a provider requested (jig.Error.RetryAfter), are up to the caller. Keys and addresses come from Settings;
// nothing is read from the environment, and no error contains a key.
//
// The package must not depend on workflows, the store, policy, or the way in which a prompt was assembled.
package model
