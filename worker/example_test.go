package worker_test

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/worker"
)

// Payments represents the service that a tool calls. The code below is the code in the README, unchanged.
type Payments struct{}

// Refund refunds a payment.
func (*Payments) Refund(context.Context, string, string, int, string) (string, error) {
	return "pay_1", nil
}

func connect() *Payments { return &Payments{} }

type refund struct {
	Invoice string `json:"invoice" jsonschema:"number of the invoice, e.g. 2026-0042"`
	Cents   int    `json:"cents" jsonschema:"amount to pay back" minimum:"1"`
}

type refunded struct {
	ID string `json:"id" jsonschema:"the payment's id"`
}

func refundTool(payments *Payments) tools.Tool {
	return tools.New(jig.Tool{
		Name:        "billing.refund",
		Description: "Pays an amount of an invoice back to the customer. Look the invoice up first.",
		Permission:  jig.PermissionWrite, // so it asks a person
		Risk:        jig.RiskHigh,
		Idempotent:  true, // the payment service honors the key
	}, func(ctx context.Context, inv jig.Invocation, in refund) (refunded, error) {
		id, err := payments.Refund(ctx, inv.Tenant, in.Invoice, in.Cents, inv.IdempotencyKey)
		return refunded{ID: id}, err
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	settings, err := worker.LoadSettings(os.Environ())
	if err != nil {
		return err
	}
	return worker.Run(ctx, settings, settings.Logger(os.Stderr), refundTool(connect()))
}

// A worker with one tool of its own.
func ExampleRun() {
	main()
}
