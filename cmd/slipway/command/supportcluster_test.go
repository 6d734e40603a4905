package command

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestTableHasNamespaceAndAllColumns(t *testing.T) {
	row := func(object string, cells ...any) metav1.TableRow {
		return metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Raw: []byte(object)}}
	}
	const kind = `"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"`
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string"}, {Name: "Ready", Type: "string"}, {Name: "Node", Type: "string", Priority: 1},
		},
		Rows: []metav1.TableRow{
			row(`{`+kind+`, "metadata": {"name": "web-1", "namespace": "shop"}}`, "web-1", "1/1", "m01"),
			row(`{`+kind+`, "metadata": {"name": "m01"}}`, "m01", "True", nil),
		},
	}
	var out strings.Builder
	if err := printTable(&out, table); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := "NAMESPACE NAME READY NODE|shop web-1 1/1 m01|m01 True"
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("printed\n%s\nas %q, want %q", out.String(), text, want)
	}
}

func TestEmptyTableIsReported(t *testing.T) {
	var out strings.Builder
	if err := printTable(&out, &metav1.Table{}); err != nil || out.String() != "No resources found\n" {
		t.Errorf("printed %q, %v", out.String(), err)
	}
}

func TestTableWithInvalidObjectIsAnError(t *testing.T) {
	table := &metav1.Table{Rows: []metav1.TableRow{{Object: runtime.RawExtension{Raw: []byte("{")}}}}
	if err := printTable(&strings.Builder{}, table); err == nil || !strings.Contains(err.Error(), "read table object") {
		t.Errorf("got error %v", err)
	}
}
