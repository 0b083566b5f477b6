;;; trainvet.el --- trainvet in Emacs, by Eglot  -*- lexical-binding: t -*-

;; Load this file, and M-x eglot starts the server in a buffer.  Eglot has one server for a buffer: this one, when it is chosen here.

;;; Code:

(require 'eglot)

(dolist (mode '(python-mode python-ts-mode js-json-mode json-mode json-ts-mode yaml-mode yaml-ts-mode conf-toml-mode toml-ts-mode sh-mode bash-ts-mode))
  (add-to-list 'eglot-server-programs (cons mode '("trainvet" "lsp"))))

(provide 'trainvet)
;;; trainvet.el ends here
