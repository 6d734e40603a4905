package router

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/test/kit"
)

func TestBrowserOpensApplication(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(site, "page", "<body><script>document.body.append(`scripts run at `+location.href)</script>"))
	c.OC("create", "route", "edge", "page", "--service=page", "--hostname=page.example.com", "--insecure-policy=Redirect")
	eventually.True(t, "the application is served", func() bool {
		_, body := fetch(c, 443, "page.example.com")
		return strings.Contains(body, "location.href")
	})
	c.WaitFor("page in the browser", func(ctx context.Context) error {
		page, err := c.Browse(ctx, "http://page.example.com/")
		if err == nil && !strings.Contains(page, "scripts run at https://page.example.com/") {
			err = fmt.Errorf("it shows\n%s", page)
		}
		return err
	})
}
