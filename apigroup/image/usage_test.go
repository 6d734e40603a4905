package image

import (
	"net/url"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/apigroup/image/retention"
)

func TestUsageHasRulesOfCommand(t *testing.T) {
	for query, want := range map[string]retention.Rules{
		"":                     {Revisions: 3, Younger: time.Hour, External: true},
		"keep-tag-revisions=0": {Younger: time.Hour, External: true},
		"keep-tag-revisions=2&keep-younger-than=90m": {Revisions: 2, Younger: 90 * time.Minute, External: true},
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rulesOf(values); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", query, got, err, want)
		}
	}
	for _, query := range []string{"keep-tag-revisions=-1", "keep-tag-revisions=few", "keep-younger-than=60", "keep-younger-than=-1m"} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rulesOf(values); !apierrors.IsBadRequest(err) {
			t.Errorf("%q: %v", query, err)
		}
	}
}
