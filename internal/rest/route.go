package rest

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"strings"
)

// handler answers a request with a body, or with an error; one that is no *fault is told as an internal one.
type handler func(r *http.Request) (any, error)

// reply is a body with a status other than 200.
type reply struct {
	status int
	body   any
}

// routes are all that is served, at / and at /v1/.
func (s *Server) routes() {
	s.clusterRoutes()
	s.jobRoutes()
	s.vertexRoutes()
	s.checkpointRoutes()
	s.operationRoutes()
}

// handle serves what matches a pattern of http.ServeMux.
func (s *Server) handle(pattern string, h handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { answer(w, r, h) })
}

// ofJob serves a path below /jobs/:jobid: the job must be the one that is served.
func (s *Server) ofJob(method, path string, h handler) {
	s.handle(method+" /jobs/{jobid}"+path, func(r *http.Request) (any, error) {
		if err := s.known(r); err != nil {
			return nil, err
		}
		return h(r)
	})
}

// known is nil where the request is about the job that is served.
func (s *Server) known(r *http.Request) error {
	id, err := hexOf(r, "jobid")
	if err == nil && id != string(s.options.ID) {
		err = notFound("Job %s not found", id)
	}
	return err
}

// hexOf is an id of 32 hexadecimal digits in the path.
func hexOf(r *http.Request, name string) (string, error) {
	text := r.PathValue(name)
	id := strings.ToLower(text)
	if !isHex(id) {
		return "", badRequest("Bad request, could not parse parameters: Cannot resolve path parameter (%s) from value %q.", name, text)
	}
	return id, nil
}

// isHex is whether id is one of Flink's: 32 hexadecimal digits.
func isHex(id string) bool { return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == "" }

// serve is the way of every request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if why := s.foreign(r); why != "" {
		writeError(w, &fault{status: http.StatusForbidden, text: why})
		return
	}
	asked := r.URL.Path
	if rest, ok := strings.CutPrefix(asked, "/v1/"); ok {
		r.URL.Path, r.URL.RawPath = "/"+rest, ""
	}
	if _, pattern := s.mux.Handler(r); pattern == "" {
		writeError(w, nothingAt(r.Method, asked))
		return
	}
	s.mux.ServeHTTP(w, r)
}

// nothingAt is the answer where nothing is served: Flink takes what is read there for a file of its dashboard.
func nothingAt(method, path string) *fault {
	if method == http.MethodGet || method == http.MethodHead {
		return &fault{status: http.StatusNotFound, text: "Unable to load requested file " + path + "."}
	}
	return &fault{status: http.StatusNotFound, text: "Not found: " + path}
}

// foreign is why a request is none of a user's: a page of somebody else's in the user's browser makes it. "": it is not foreign.
func (s *Server) foreign(r *http.Request) string {
	if err := new(http.CrossOriginProtection).Check(r); err != nil {
		return "A page of another origin asks this: " + err.Error()
	}
	local, ok := s.listener.Addr().(*net.TCPAddr)
	if ok && local.IP.IsLoopback() && !isLoopback(r.Host) {
		return "The job is served to this machine only, and is not called " + r.Host + " here."
	}
	return ""
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// answer writes what a handler answers.
func answer(w http.ResponseWriter, r *http.Request, h handler) {
	body, err := h(r)
	if err != nil {
		writeError(w, faultOf(err))
		return
	}
	if other, ok := body.(reply); ok {
		write(w, other.status, other.body)
		return
	}
	write(w, http.StatusOK, body)
}

func write(w http.ResponseWriter, status int, body any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the names of vertices have ->
	if err := e.Encode(body); err != nil {
		panic(err) // a body is made of our own types
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_, _ = w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n"))) // who has gone away does not want it
}

func writeError(w http.ResponseWriter, f *fault) {
	write(w, f.status, errorBody{Errors: []string{f.body()}})
}

// errorBody is the form of all errors.
type errorBody struct {
	Errors []string `json:"errors"`
}

// empty is {}.
type empty struct{}
