package main

import (
	"strings"
	"testing"
)

func TestLinksOfDocumentsResolve(t *testing.T) {
	all, err := stage(root)
	if err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(all["index.md"], "# Slipway") {
		t.Errorf("page index.md begins with %.40q", all["index.md"])
	}
}

func TestLinksAreRewritten(t *testing.T) {
	files := map[string]string{
		"README.md": "index.md", "docs/admin/csi.md": "admin/csi.md", "docs/compat.md": "compat.md", "examples/go/README.md": "examples/go/index.md",
	}
	for name, tt := range map[string]struct{ page, target, want string }{
		"sibling":                 {"docs/admin/csi.md", "../compat.md", "../compat.md"},
		"folder with a page":      {"docs/admin/csi.md", "../../examples/go", "../examples/go/index.md"},
		"file that is not a page": {"docs/admin/csi.md", "../../go.mod", repository + "go.mod"},
		"another site":            {"docs/compat.md", "https://kubernetes.io/docs", "https://kubernetes.io/docs"},
		"generated when it's due": {"docs/compat.md", "reference/oc/index.md", "reference/oc/index.md"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resolve(root, files, tt.page, tt.target)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	if _, err := resolve(root, files, "docs/compat.md", "gone.md"); err == nil || !strings.Contains(err.Error(), "docs/compat.md: the link to gone.md has no target") {
		t.Errorf("got error %v", err)
	}
}
