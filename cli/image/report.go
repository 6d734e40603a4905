package image

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	imagev1 "github.com/openshift/api/image/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apigroup/image/retention"
)

// report prints tables of removed objects and content, with the headings of OpenShift 3.11.
type report struct {
	table   *tabwriter.Writer
	started map[string]bool
}

func newReport(out io.Writer) *report {
	return &report{tabwriter.NewWriter(out, 10, 4, 3, ' ', 0), map[string]bool{}}
}

func (r *report) flush() { _ = r.table.Flush() }

// head prints the headings of a table, unless they have already been printed.
func (r *report) head(title, columns string) {
	if r.started[title] {
		return
	}
	if len(r.started) > 0 {
		fmt.Fprintln(r.table)
	}
	r.started[title] = true
	fmt.Fprintf(r.table, "%s\n%s\n", title, columns)
}

func (r *report) streams(all []retention.Shorter) {
	for _, less := range all {
		r.head("Deleting references from image streams to images ...", "STREAM\tACTION\tTAGS")
		for _, change := range []struct {
			action string
			tags   []string
		}{{"Updated", less.Updated}, {"Deleted", less.Deleted}} {
			if len(change.tags) > 0 {
				fmt.Fprintf(r.table, "%s/%s\t%s\t%s\n", less.Stream.Namespace, less.Stream.Name, change.action, strings.Join(change.tags, ", "))
			}
		}
	}
}

func (r *report) registry(removed record.Garbage) {
	for _, link := range removed.Layers {
		r.head("Deleting registry repository layer links ...", "REPO\tLAYER LINK")
		fmt.Fprintf(r.table, "%s\t%s\n", link.Repository, link.Digest)
	}
	for _, link := range removed.Manifests {
		r.head("Deleting registry repository manifest data ...", "REPO\tIMAGE")
		fmt.Fprintf(r.table, "%s\t%s\n", link.Repository, link.Digest)
	}
	for _, blob := range removed.Blobs {
		r.head("Deleting registry layer blobs ...", "BLOB")
		fmt.Fprintln(r.table, blob)
	}
	for _, rest := range removed.Uploads {
		r.head("Deleting abandoned uploads ...", "UPLOAD")
		fmt.Fprintln(r.table, rest)
	}
}

func (r *report) images(all []imagev1.Image) {
	for _, image := range all {
		r.head("Deleting images from server ...", "IMAGE")
		fmt.Fprintln(r.table, image.Name)
	}
}
