-- A session in headless Neovim: the mistake in model.py is shown, its quick fix is applied, and it is gone.
-- Called as `nvim --headless -u NONE -c "luafile session.lua" -c "cquit 1"` with TRAINVET_SETTINGS and the program in PATH.
-- Whoever starts it ends it where it hangs; until then it waits for what has to come.
local forever = 3600000 -- milliseconds

local function fail(message)
  io.stderr:write(message .. '\n')
  vim.cmd('cquit 1')
end

local ok, reason = pcall(function()
  local settings = dofile(vim.env.TRAINVET_SETTINGS)
  if vim.lsp.config then
    vim.lsp.config('trainvet', settings)
    vim.lsp.enable('trainvet')
  end
  vim.cmd('edit model.py')
  vim.bo.filetype = 'python'
  local buffer = vim.api.nvim_get_current_buf()
  local function wait(what, holds)
    if not vim.wait(forever, holds, 20) then
      fail('never came: ' .. what)
    end
  end
  wait('the diagnostic', function() return #vim.diagnostic.get(buffer) == 1 end)
  local found = vim.diagnostic.get(buffer)[1]
  print(string.format('%d:%d-%d:%d %s %s', found.lnum, found.col, found.end_lnum, found.end_col, found.source, found.code))

  local id
  for _, client in pairs((vim.lsp.get_clients or vim.lsp.get_active_clients)()) do
    id = client.id
  end
  local client = vim.lsp.get_client_by_id(id)
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(buffer) },
    range = { start = { line = found.lnum, character = 0 }, ['end'] = { line = found.lnum, character = 99 } },
    context = { diagnostics = {}, only = { 'quickfix' } },
  }
  local answers = vim.lsp.buf_request_sync(buffer, 'textDocument/codeAction', params, forever)
  for _, action in ipairs(answers[id].result) do
    if action.isPreferred then
      print(action.title)
      vim.lsp.util.apply_workspace_edit(action.edit, client.offset_encoding)
    end
  end
  wait('its end', function() return #vim.diagnostic.get(buffer) == 0 end)
  print(vim.api.nvim_buf_get_lines(buffer, 10, 11, false)[1])
  vim.cmd('quitall!')
end)
if not ok then
  fail(tostring(reason))
end
