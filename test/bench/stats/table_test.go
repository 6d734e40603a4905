package stats

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTablesRightAlignNumbers(t *testing.T) {
	table := Table{Heading: []string{"", "PSS"}, Rows: [][]string{{"etcd", "5 MiB"}, {"größer", "500 MiB"}}}
	text := "            PSS\netcd      5 MiB\ngrößer  500 MiB\n"
	if diff := cmp.Diff(text, table.Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	markdown := "|  | PSS |\n| --- | ---: |\n| etcd | 5 MiB |\n| größer | 500 MiB |\n"
	if diff := cmp.Diff(markdown, table.Markdown()); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
}
