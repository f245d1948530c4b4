package shop_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/scaffold/shop"
	"github.com/jig-run/jig/tools/tooltest"
)

// newKit returns a kit that runs the tool as the engine would, on a shop with one order.
func newKit(t *testing.T) *tooltest.Kit {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "1042.json"), []byte(`{"customer": "Ana Ruiz", "cents": 4990}`), 0o600); err != nil {
		t.Fatal(err)
	}
	orders, err := shop.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = orders.Close() })
	return tooltest.New(t, shop.RefundTool(orders))
}

// paying returns the input of a call.
func paying(order string, cents int) map[string]any {
	return map[string]any{"order": order, "cents": cents, "reason": "it came late"}
}

func TestRefund_PaysOnce(t *testing.T) {
	t.Parallel()
	kit := newKit(t)
	for range 2 { // the second time, the worker has died before it could store the result
		var out struct{ Number, Left int }
		kit.Succeed("orders.refund", paying("1042", 1500), &out)
		if out.Number != 1 || out.Left != 3490 {
			t.Fatalf("it paid %+v", out)
		}
	}
	kit.Invocation.IdempotencyKey = "another call"
	if e := kit.Fail("orders.refund", paying("1042", 3491)); e.Code != jig.CodeInvalidInput {
		t.Fatalf("it pays more than is left: %v", e)
	}
	if e := kit.Fail("orders.refund", paying("7", 1)); e.Code != jig.CodeNotFound {
		t.Fatalf("it pays for an order that does not exist: %v", e)
	}
}

func TestRefund_DoesWhatItsPreviewShows(t *testing.T) {
	t.Parallel()
	kit := newKit(t)
	preview := kit.Preview("orders.refund", paying("1042", 1500))
	if want := "Pays 15.00 EUR of order 1042 back to Ana Ruiz"; preview.Title != want {
		t.Fatalf("the preview is %+v", preview)
	}
	kit.Succeed("orders.refund", paying("1042", 1500), nil) // somebody else is quicker

	kit.Invocation.IdempotencyKey, kit.Invocation.Precondition = "another call", preview.Precondition
	if e := kit.Fail("orders.refund", paying("1042", 1500)); e.Code != jig.CodeConflict {
		t.Fatalf("it pays although the preview is out of date: %v", e)
	}
}
