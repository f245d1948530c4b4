package e2e_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/modeltest"
)

// bigOrder writes a file that is named for the order of an event.
const bigOrder = `kind: composition
name: probe.bigOrder
description: Waits for a payment of any order and says which order it was for.
steps:
  - id: paid
    wait_for: {event: paid, timeout: 5m}
  - set:
      text: "order ${steps.paid.data.order} is paid"
      raw: "${steps.paid.data.order}"
  - id: note
    tool: file.write
    input: {path: "out/order-${steps.paid.data.order}.txt", content: "paid: ${json.encode(steps.paid.data)}"}
output: "${vars}"
`

// bigAnswer asks a model for an id.
const bigAnswer = `kind: composition
name: probe.bigAnswer
description: Asks a model for an object with an id and a name.
steps:
  - id: a
    prompt: {model: openai/some-model, prompt: "Who?", schema: {type: object, required: [id, name], properties: {id: {type: integer}, name: {type: string}}}}
output: {whole: "${steps.a.data.output}", text: "id ${steps.a.data.output.id}"}
`

// An integer that a double cannot hold keeps its digits from an event and from a model's answer to approvals, files and outputs.
func TestBigInteger_KeepsItsDigits(t *testing.T) {
	t.Parallel()
	const order = "7615917337495251231"
	d := withModel(t, func(modeltest.Request) modeltest.Reply { return modeltest.Text(`{"id": ` + order + `, "name": "Ana"}`) })
	d.put("order.yaml", bigOrder)
	d.put("answer.yaml", bigAnswer)

	started := d.jig("run", "order.yaml", "--no-wait")
	id := regexp.MustCompile(`ses_[\w-]+`).FindString(started.out + started.err)
	require.NotEmpty(t, id, "%+v", started)
	require.Zero(t, d.jig("event", id, "paid", "--data", `{"order":`+order+`}`).code)
	asked := d.allow(id, "1.1/note")
	require.JSONEq(t, `{"content":"paid: {\"order\":`+order+`}","path":"out/order-`+order+`.txt"}`, string(asked.Input))
	require.JSONEq(t, `{"raw":`+order+`,"text":"order `+order+` is paid"}`, string(d.output(id).Data))
	require.Contains(t, string(d.output(id).Data), `"raw":`+order, "JSONEq compares numbers as doubles")
	require.Equal(t, `paid: {"order":`+order+`}`, d.content("out/order-"+order+".txt"))

	answered := d.jig("run", "answer.yaml", "--output", "json")
	require.Zero(t, answered.code, answered.err)
	require.Regexp(t, `"id": ?`+order, answered.out)
	require.Contains(t, answered.out, `"id `+order+`"`)
}
