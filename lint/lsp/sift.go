package lsp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.lsp.dev/jsonrpc2"
)

// Bounds of what is read of one message, bytes.
const (
	maxBody   = 160 << 20 // the largest file that is read, with its quotes escaped
	maxHeader = 8 << 10
)

// sift lets only sound messages through to the connection, which ends at the first one that is not. Broken bodies are answered
// here. A broken header ends the input with an error: nobody knows where the next message begins.
type sift struct {
	in      *bufio.Reader
	reply   io.Writer
	pending bytes.Buffer // the message that is handed on
	body    bytes.Buffer
	ended   func(error) // called once, at the end of the input; nil error: it ended between two messages
	over    error
}

func newSift(in io.Reader, reply io.Writer, ended func(error)) *sift {
	return &sift{in: bufio.NewReaderSize(in, 64<<10), reply: reply, ended: ended}
}

// Read implements io.Reader.
func (s *sift) Read(p []byte) (int, error) {
	for s.pending.Len() == 0 {
		if s.over != nil {
			return 0, s.over
		}
		if err := s.next(); err != nil {
			s.over = io.EOF
			if errors.Is(err, io.EOF) {
				err = nil
			}
			s.ended(err)
		}
	}
	return s.pending.Read(p)
}

// next reads one message, and hands it on where it is sound.
func (s *sift) next() error {
	length, err := s.header()
	if err != nil {
		return err
	}
	s.body.Reset()
	if got, err := io.CopyN(&s.body, s.in, int64(length)); err != nil { // grows with what is there, whatever was claimed
		return fmt.Errorf("the input ends after %d of %d bytes of a message", got, length)
	}
	body := s.body.Bytes()
	if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return s.refuse(jsonrpc2.ParseError, "the message is not JSON")
	}
	message, err := jsonrpc2.DecodeMessage(body)
	if err != nil {
		return s.refuse(jsonrpc2.InvalidRequest, "the message is neither a request nor a response")
	}
	if body, err = withParams(message, body); err != nil {
		return s.refuse(jsonrpc2.InvalidRequest, "the message is neither a request nor a response")
	}
	fmt.Fprintf(&s.pending, "Content-Length: %d\r\n\r\n", len(body))
	s.pending.Write(body)
	if s.body.Cap() > 1<<20 { // one huge message must not hold its memory for good
		s.body = bytes.Buffer{}
	}
	return nil
}

// withParams is the body of a message, of a request without parameters or with null with empty ones: package protocol reads parameters
// before it looks whether it knows the method, and would call their absence the fault.
func withParams(message jsonrpc2.Message, body []byte) ([]byte, error) {
	request, is := message.(jsonrpc2.RequestMessage)
	if !is || len(request.Params()) > 0 && string(request.Params()) != "null" {
		return body, nil
	}
	empty := jsonrpc2.RawMessage("{}")
	if call, is := message.(*jsonrpc2.Call); is {
		return jsonrpc2.EncodeMessage(jsonrpc2.NewCall(call.ID(), call.Method(), empty))
	}
	return jsonrpc2.EncodeMessage(jsonrpc2.NewNotification(request.Method(), empty))
}

// refuse answers a message whose id is not known.
func (s *sift) refuse(code jsonrpc2.Code, message string) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`, code, message)
	_, err := fmt.Fprintf(s.reply, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// header reads the lines before a message, and gives its length.
func (s *sift) header() (length int, err error) {
	length = -1
	for read := 0; ; {
		line, err := s.in.ReadSlice('\n')
		read += len(line)
		switch {
		case err == io.EOF && read == 0:
			return 0, io.EOF
		case err == io.EOF:
			return 0, errors.New("the input ends inside of a header")
		case read > maxHeader || err == bufio.ErrBufferFull:
			return 0, errors.New("a header that does not end")
		case err != nil:
			return 0, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			if length < 0 {
				return 0, errors.New("a header without Content-Length")
			}
			return length, nil
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return 0, errors.New("a header line without a colon")
		}
		if strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			length, err = strconv.Atoi(strings.TrimSpace(value))
			if err != nil || length < 0 || length > maxBody {
				return 0, fmt.Errorf("a header with the length %.40q", strings.TrimSpace(value))
			}
		}
	}
}
