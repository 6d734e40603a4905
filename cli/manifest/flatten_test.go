package manifest

import "testing"

func TestListsBecomeDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: v1, kind: List, items: [{kind: A, number: 9007199254740993}, {kind: B}]}": "kind: A\nnumber: 9007199254740993\n\n---\nkind: B\n",
		"kind: C\n---\n{apiVersion: v1, kind: List, items: [{kind: A}]}":                        "kind: C\n\n---\nkind: A\n",
		"kind: C\n---\nkind: D\n": "",
		"not: [closed":            "",
	} {
		flat, changed := Flatten([]byte(text))
		if changed != (want != "") || changed && string(flat) != want || !changed && string(flat) != text {
			t.Errorf("%q becomes %q, %t", text, flat, changed)
		}
	}
}

func TestReviewsAreRecognized(t *testing.T) {
	for text, want := range map[string]bool{
		"kind: Pod\n---\n{kind: SubjectAccessReview}": true, "kind: Reviewer": false, "kind: [": false,
	} {
		if HasReview([]byte(text)) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
