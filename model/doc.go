// Package model asks language models for the next turn of a session. It supports Anthropic's Messages API, every server that speaks
// OpenAI's Chat Completions (OpenAI itself, Ollama, vLLM, gateways), and script, a deterministic planner for tests and for automations that
// need no model.
//
// [Router] chooses the provider by the prefix of the model's name. conversation.go turns the neutral transcript of a chat.Request into steps in
// which every call has an id and a result; anthropic.go and openai.go write these steps in the format of a provider. endpoint.go sends the request and
// watches for silence. A reader for each format assembles the answer, streamed or not, into a chat.Turn.
//
// Answers are read with distrust. Texts may be cut within a character (wiretext.go), calls may lack ids or share an index (accumulate.go), and an
// answer that breaks off or says nothing is an error and not a turn (accumulate.go, failure.go). TestBrokenAnswers_HaveTheirOutcome tries the combinations.
//
// A provider is asked once: retries, after the wait that it requested (jig.Error.RetryAfter), are up to the caller. Keys and addresses come from
// [Settings]; nothing is read from the environment, and no error contains a key.
//
// Begin with router.go and endpoint.go. The package must not depend on workflows, the store, policy, or the way in which a prompt was assembled.
package model
