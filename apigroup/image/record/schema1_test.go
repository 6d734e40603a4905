package record

import (
	"strings"
	"testing"
)

// signed is a schema 1 manifest with a signature and indentation. The test contains the digest of
// the text that Docker signed.
const signed = `{
  "schemaVersion": 1, "name": "library/a", "tag": "latest",
  "history": [{"v1Compatibility": "{\"a\":\"b \\u0026 c\"}"}],
  "signatures": [{"signature": "x"}]
}`

const unsignedText = `{
   "schemaVersion": 1,
   "name": "library/a",
   "tag": "latest",
   "history": [
      {
         "v1Compatibility": "{\"a\":\"b \\u0026 c\"}"
      }
   ]
}`

func TestSchema1DigestIsThatOfSignedText(t *testing.T) {
	for name, tt := range map[string]struct{ manifest, want string }{
		"reformatted":      {signed, Digest([]byte(unsignedText))},
		"without newlines": {strings.ReplaceAll(signed, "\n", ""), Digest([]byte(unsignedText))},
		"other content":    {strings.ReplaceAll(signed, "library/a", "library/b"), Digest([]byte(strings.ReplaceAll(unsignedText, "library/a", "library/b")))},
		"schema 2":         {`{"schemaVersion": 2}`, Digest([]byte(`{"schemaVersion": 2}`))},
	} {
		if got, err := DigestOf([]byte(tt.manifest)); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, tt.want)
		}
	}
	if _, err := DigestOf([]byte(`{"a":` + strings.Repeat(`[0],`, 20_000))); err == nil {
		t.Error("too many values are accepted")
	}
}

func TestSchema1IsRecognized(t *testing.T) {
	for manifest, want := range map[string]bool{signed: true, `{"schemaVersion": 2}`: false, `[]`: false, ``: false} {
		if IsSchema1([]byte(manifest)) != want {
			t.Errorf("%.30q is of schema 1: %v", manifest, !want)
		}
	}
}
