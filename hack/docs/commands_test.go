package main

import "testing"

func TestDescriptionsBecomeMarkdown(t *testing.T) {
	for name, tt := range map[string]struct{ description, want string }{
		"paragraphs":  {"First.\n\nSecond.\n", "First.\n\nSecond."},
		"markup":      {"a <name>, *.txt, a_b, [x]", "a &lt;name>, \\*.txt, a\\_b, \\[x]"},
		"with a list": {"Ways:\n  * one", "```text\nWays:\n  * one\n```"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := prose(tt.description); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
