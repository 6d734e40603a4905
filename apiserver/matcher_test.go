package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/emicklei/go-restful/v3"
)

func TestRoutesWithEqualPathsShareMatcher(t *testing.T) {
	service := new(restful.WebService).Path("/apis/example.com/v1")
	respond := func(text string) restful.RouteFunction {
		return func(_ *restful.Request, response *restful.Response) { _, _ = response.Write([]byte(text)) }
	}
	service.Route(service.GET("/things/{name}").To(respond("get")))
	service.Route(service.DELETE("/things/{name}").To(respond("delete")))
	service.Route(service.GET("/things").To(respond("list")))
	if removed := ShareMatchers([]*restful.WebService{service}); removed != 1 {
		t.Errorf("%d matchers have been removed, want 1", removed)
	}
	for _, router := range []restful.RouteSelector{restful.CurlyRouter{}, restful.RouterJSR311{}} {
		container := restful.NewContainer()
		container.Router(router)
		container.Add(service)
		for request, want := range map[[2]string]string{
			{http.MethodGet, "/apis/example.com/v1/things/a"}:    "get",
			{http.MethodDelete, "/apis/example.com/v1/things/a"}: "delete",
			{http.MethodGet, "/apis/example.com/v1/things"}:      "list",
		} {
			response := httptest.NewRecorder()
			container.ServeHTTP(response, httptest.NewRequest(request[0], request[1], nil))
			if got := response.Body.String(); got != want {
				t.Errorf("%T: %v returns %q, want %q", router, request, got, want)
			}
		}
	}
}
